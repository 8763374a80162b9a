-- Models that a view leaves out, by reason. which: the first of them, for a table.
-- num_models: models that are left out [models]
-- models: names of the models
-- which: names of the models; all if every model
select
    left_out_of,
    reason,
    count(distinct model) as num_models,
    string_agg(distinct model, ', ' order by model) as models,
    array_to_string(list(distinct model order by model)[1:5], ', ')
    || if(count(distinct model) > 5, ' and ' || (count(distinct model) - 5) || ' more', '')
        as which
from unmeasured
where protocol = $protocol and left_out_of is not null
group by left_out_of, reason
order by left_out_of, reason
