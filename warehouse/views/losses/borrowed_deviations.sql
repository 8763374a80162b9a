-- Bootstrap deviations for the cells with a pooled error. For pooled_deviations.
-- Grain: one row per model, source, protocol, month, replicate.
-- Each replicate is that of another month of the source, rescaled: so two models on the same
--   documents stay paired. A hash of the replicate's number and the month chooses the other month.
--   Its next replicate is taken, so that both are independent.
-- Units: as replicate_deviations; the mean square of deviation is the squared pooled error.
-- Source: docs/metrics.md (Intervals).
create or replace view internal.borrowed_deviations as
with thin as (
    select *
    from internal.pooled_errors
    where is_pooled
),

lenders as (
    select
        source,
        protocol,
        month,
        row_number() over (partition by source, protocol order by month) - 1 as place,
        count(*) over (partition by source, protocol) as num_lenders
    from internal.pooled_errors
    where not is_pooled and standard_error is not null
    group by source, protocol, month
),

draws as (
    select
        t.*,
        c.replicate,
        l.month as lender
    from thin as t
    cross join internal.replicate_constants as c
    inner join lenders as l
        on
            t.source = l.source
            and t.protocol = l.protocol
            and (c.multiplier * (year(t.month) * 12 + month(t.month)) + c.increment) % l.num_lenders
            = l.place
),

-- Without a figure of the lending month, the replicate is 0.
borrowed as (
    select
        d.model,
        d.source,
        d.protocol,
        d.month,
        d.replicate,
        d.standard_error,
        coalesce(r.deviation * sqrt(e.num_clusters), 0) as deviation,
        coalesce(r.weight_deviation, 0) as weight_deviation,
        coalesce(r.bytes_deviation * sqrt(e.num_clusters / d.num_clusters), 0) as bytes_deviation
    from draws as d
    left join internal.pooled_errors as e
        on
            d.model = e.model
            and d.source = e.source
            and d.protocol = e.protocol
            and d.lender = e.month
            and not e.is_pooled
    left join internal.replicate_deviations as r
        on
            e.model = r.model
            and e.source = r.source
            and e.protocol = r.protocol
            and e.month = r.month
            and d.replicate % 200 + 1 = r.replicate
)

select
    model,
    source,
    protocol,
    month,
    replicate,
    coalesce(
        deviation * standard_error / nullif(sqrt(avg(deviation * deviation) over cell), 0), 0
    ) as deviation,
    coalesce(
        weight_deviation / nullif(sqrt(avg(weight_deviation * weight_deviation) over cell), 0), 0
    ) as weight_deviation,
    bytes_deviation
from borrowed
window cell as (partition by model, source, protocol, month);
