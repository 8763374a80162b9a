-- Each cell's figures, and the factors that rescale its replicates. For replicate_deviations.
-- Grain: one row per model, source, protocol, month; no rows without a standard error.
-- Deviations are rescaled: their mean square is the squared standard error of the month. Unscaled
--   replicates have too small deviations if documents are few and lengths log-normal: a cluster
--   with much of a month pulls the month's ratio towards itself.
-- Units: scale has none. weight_scale is 1 / root mean square of bytes_deviation. Both are NULL if
--   all replicates are alike.
-- Source: docs/metrics.md (Intervals).
create or replace view internal.replicate_scales as
with deviations as (
    select
        r.model,
        r.source,
        r.protocol,
        r.month,
        c.bits_per_byte,
        c.num_bytes,
        c.standard_error,
        coalesce(r.nll_nats / (ln(2) * nullif(r.num_bytes, 0)) - c.bits_per_byte, 0) as deviation,
        r.num_bytes / c.num_bytes - 1 as bytes_deviation
    from internal.cell_replicates as r
    inner join internal.period_loss as c
        on
            r.model = c.model
            and r.source = c.source
            and r.protocol = c.protocol
            and r.month = c.month
    where c.standard_error is not null
)

select
    model,
    source,
    protocol,
    month,
    any_value(bits_per_byte) as bits_per_byte,
    any_value(num_bytes) as num_bytes,
    any_value(standard_error) / nullif(sqrt(avg(deviation * deviation)), 0) as scale,
    1 / nullif(sqrt(avg(bytes_deviation * bytes_deviation)), 0) as weight_scale
from deviations
group by model, source, protocol, month;
