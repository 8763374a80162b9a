-- Deviation of each bootstrap replicate of a month's bits per byte from the month's figure.
-- Deviations are rescaled by replicate_scales. For a linear combination of monthly figures, the
--   mean square of sum(coefficient * deviation) is the variance. It includes the correlation of
--   documents that recur in other months or models.
-- Grain: one row per model, source, protocol, month, replicate; no rows without a standard error.
-- Units: deviation is in bits per byte, 0 if a replicate drew no document of the month.
--   bytes_deviation: (replicate's bytes - month's bytes) / month's bytes; 1 / its mean square is
--   Kish's effective number of clusters. weight_deviation: bytes_deviation, scaled to a mean square
--   of 1; it measures how far months consist of the same clusters.
-- Replicates are read twice: keeping millions of rows takes longer, and a gigabyte.
-- Source: docs/metrics.md (Intervals).
create or replace view internal.replicate_deviations as
select
    r.model,
    r.source,
    r.protocol,
    r.month,
    r.replicate,
    coalesce(
        coalesce(r.nll_nats / (ln(2) * nullif(r.num_bytes, 0)) - s.bits_per_byte, 0) * s.scale, 0
    ) as deviation,
    coalesce((r.num_bytes / s.num_bytes - 1) * s.weight_scale, 0) as weight_deviation,
    r.num_bytes / s.num_bytes - 1 as bytes_deviation
from internal.cell_replicates as r
inner join internal.replicate_scales as s
    on
        r.model = s.model
        and r.source = s.source
        and r.protocol = s.protocol
        and r.month = s.month;
