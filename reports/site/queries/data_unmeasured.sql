-- Models that a view leaves out, by reason.
select
    left_out_of,
    reason,
    count(distinct model) as num_models,
    string_agg(distinct model, ', ' order by model) as models
from unmeasured
where protocol = $protocol and left_out_of is not null
group by left_out_of, reason
order by left_out_of, reason
