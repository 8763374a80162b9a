-- The landed months of each source, and the regime that each is of.
-- Grain: one row per source, month. Undated text, and months with imported losses alone, have none.
-- period: month, half-month or week; month is its first day.
-- regime: how the texts came about: the last declared change of the site or of our method, and the
--   version of our cleaner. is_regime_start: the landed month before has another regime. Figures of
--   different regimes are of different texts.
-- Units: counts; num_bytes is UTF-8 text.
-- Source: reads landed_partitions; docs/metrics.md (Regimes).
create or replace view source_months as
select
    source,
    month,
    source_period(source) as period,
    regime,
    coalesce(regime <> lag(regime) over (partition by source order by month), false)
        as is_regime_start,
    num_documents,
    num_bytes,
    partition_version
from internal.landed_partitions
where month is not null;
