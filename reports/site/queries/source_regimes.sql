-- Months from which a source's site or our reading of it differs from before.
select
    source,
    month,
    regime
from source_months
where is_regime_start
order by source, month
