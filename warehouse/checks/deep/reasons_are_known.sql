-- Chunks of cells scored by tidemark with an unknown reason for a missing loss.
-- Do: Use the tidemark that scored them, or later; else move their losses out of the data root and
--   score them again.
select
    losses.model,
    losses.source,
    losses.month,
    losses.protocol,
    losses.document_id,
    losses.chunk_index,
    losses.reason
from chunk_losses as losses
semi join internal.landed_cells as cells
    on
        losses.model = cells.model
        and losses.source = cells.source
        and losses.month is not distinct from cells.month
        and losses.protocol = cells.protocol
        and cells.partition_digest is not null
where
    losses.reason <> ''
    and losses.reason not in ('non_finite', 'no_tokens', 'not_measurable', 'dropped')
    and not starts_with(losses.reason, 'compression_failed');
