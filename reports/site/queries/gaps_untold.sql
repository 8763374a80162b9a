-- Why models have no gap over all sources with an interval: the commonest reason first, but an
-- unknown cutoff last.
-- num_models: models of this reason [models]
select
    reason,
    count(*) as num_models
from panel_tests
where
    effect = 'gap' and source is null and protocol = $protocol
    and value_low is null and reason is not null
group by reason
order by reason = 'cutoff unknown', num_models desc, reason asc
