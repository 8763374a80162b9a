-- Predictions of a month's level from the months around it: medians of the levels before and after.
-- Grain: one row per model, protocol, source, month with a prediction. For suspected_contamination.
-- Neighbours: up to four months before, and up to four after, on the same side of the catalogue's
--   cutoff. A side needs three neighbours to predict.
-- Units: bits per byte. shortfall: predicted - level, the smaller of both sides. deviation: level -
--   median of all neighbours. Both are divided by sqrt(1 + 1.45 / neighbours), the spread of a
--   difference from the median of so many neighbours, relative to a month's spread.
-- Source: docs/metrics.md (Control-adjusted figures and change points).
create or replace view internal.neighbour_predictions as
with levels as materialized (
    from internal.controlled_level
),

neighbours as (
    select
        l.model,
        l.protocol,
        l.source,
        l.month,
        l.level,
        n.month > l.month as is_later,
        n.level as neighbour
    from levels as l
    inner join levels as n
        on
            l.model = n.model
            and l.protocol = n.protocol
            and l.source is not distinct from n.source
            and l.is_after is not distinct from n.is_after
    where l.month != n.month and abs(date_diff('month', l.month, n.month)) <= 4
),

centres as (
    select
        model,
        protocol,
        source,
        month,
        (any_value(level) - median(neighbour)) / sqrt(1 + 1.45e0 / count(*)) as deviation
    from neighbours
    group by model, protocol, source, month
    having count(*) >= 3
),

sides as (
    select
        model,
        protocol,
        source,
        month,
        median(neighbour) as predicted,
        (median(neighbour) - any_value(level)) / sqrt(1 + 1.45e0 / count(*)) as shortfall
    from neighbours
    group by model, protocol, source, month, is_later
    having count(*) >= 3
)

select
    s.model,
    s.protocol,
    s.source,
    s.month,
    arg_min(s.predicted, s.shortfall) as predicted,
    min(s.shortfall) as shortfall,
    any_value(c.deviation) as deviation
from sides as s
inner join centres as c
    on
        s.model = c.model
        and s.protocol = c.protocol
        and s.source is not distinct from c.source
        and s.month = c.month
group by s.model, s.protocol, s.source, s.month;
