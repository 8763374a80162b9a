-- Deviation of each bootstrap replicate of a month's bits per byte from the month's figure.
-- Deviations are rescaled: their mean square is the squared standard error of the month. Unscaled
--   replicates have too small deviations if documents are few and lengths log-normal: a cluster
--   with much of a month pulls the month's ratio towards itself. For a linear combination of
--   monthly figures, the mean square of sum(coefficient * deviation) is the variance. It includes
--   the correlation of documents that recur in other months or models.
-- Grain: one row per model, source, protocol, month, replicate; no rows without a standard error.
-- Units: deviation is in bits per byte, 0 if a replicate drew no document of the month.
--   bytes_deviation: (replicate's bytes - month's bytes) / month's bytes; 1 / its mean square is
--   Kish's effective number of clusters. weight_deviation: bytes_deviation, scaled to a mean square
--   of 1; it measures how far months consist of the same clusters.
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
    from internal.period_loss_details
    where standard_error is not null
),

-- Computed twice: keeping millions of rows takes longer, and a gigabyte.
deviations as not materialized (
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
