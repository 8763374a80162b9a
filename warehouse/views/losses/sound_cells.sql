-- The landed cells, with sums that are NULL if a loss is not finite. For other views to read.
-- Grain: one row per model, source, month, protocol.
-- Units: as landed_cells.
-- Source: docs/metrics.md (Likelihood).
create or replace view internal.sound_cells as
select
    model,
    revision,
    source,
    month,
    protocol,
    num_documents,
    num_chunks,
    num_unmeasured,
    num_clusters,
    fingerprint,
    num_not_finite = 0 as is_finite,
    case when num_not_finite = 0 then nll_nats end as nll_nats,
    case when num_not_finite = 0 then num_tokens end as num_tokens,
    case when num_not_finite = 0 then num_chars end as num_chars,
    case when num_not_finite = 0 then num_bytes end as num_bytes,
    case when num_not_finite = 0 then standard_error end as standard_error,
    case when num_not_finite = 0 then degrees_of_freedom end as degrees_of_freedom
from internal.landed_cells;
