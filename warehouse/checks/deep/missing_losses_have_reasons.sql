-- Chunks without a loss and without a reason, and chunks with both a loss and a reason.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.
select
    model,
    source,
    month,
    protocol,
    document_id,
    chunk_index,
    nll_nats,
    reason
from chunk_losses
where (nll_nats is null) <> (coalesce(reason, '') <> '');
