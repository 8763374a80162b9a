-- How far each bootstrap replicate of a month's bits per byte lies from the figure, rescaled so
-- that its mean square is the month's standard error squared. For intervals of what is linear in
-- monthly figures: the sum of coefficient times deviation has, over replicates, the figure's
-- variance, with documents that come back in other months or models correlated as they are.
-- Rescaled because a cluster that carries much of a month pulls the month's ratio towards itself:
-- replicates alone are too narrow where documents are few and their lengths log-normal.
-- Grain: one row per model, source, protocol, month, replicate; months without a standard error
--   (a single cluster, or one with all the bytes) have none.
-- Units: deviation in bits per byte, 0 where a replicate drew no document of the month;
--   weight_deviation is that of the month's bytes, its mean square made 1: it tells how far months
--   consist of the same clusters. bytes_deviation is the same as a share of the bytes, as it is: 1
--   over its mean square is Kish's effective number of clusters.
-- Source: docs/metrics.md (Intervals).
create or replace view internal.replicate_deviations as
with cells as (
    select
        model,
        source,
        protocol,
        month,
        bits_per_byte,
        num_bytes,
        standard_error
    from internal.monthly_loss_details
    where standard_error is not null
),

deviations as materialized (
    select
        r.model,
        r.source,
        r.protocol,
        r.month,
        r.replicate,
        c.standard_error,
        coalesce(r.nll_nats / (ln(2) * nullif(r.num_bytes, 0)) - c.bits_per_byte, 0) as deviation,
        r.num_bytes / c.num_bytes - 1 as weight_deviation
    from internal.cell_replicates as r
    inner join cells as c
        on
            r.model = c.model
            and r.source = c.source
            and r.protocol = c.protocol
            and r.month = c.month
),

scales as (
    select
        model,
        source,
        protocol,
        month,
        any_value(standard_error) / nullif(sqrt(avg(deviation * deviation)), 0) as scale,
        1 / nullif(sqrt(avg(weight_deviation * weight_deviation)), 0) as weight_scale
    from deviations
    group by model, source, protocol, month
)

select
    d.model,
    d.source,
    d.protocol,
    d.month,
    d.replicate,
    coalesce(d.deviation * s.scale, 0) as deviation,
    coalesce(d.weight_deviation * s.weight_scale, 0) as weight_deviation,
    d.weight_deviation as bytes_deviation
from deviations as d
inner join scales as s
    on
        d.model = s.model
        and d.source = s.source
        and d.protocol = s.protocol
        and d.month = s.month;
