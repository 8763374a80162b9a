-- Chunks without a loss and without a reason, and chunks with both a loss and a reason.
-- Do: Delete the writer's database (work/writer.duckdb) and run `tidemark score` again: it lands
--   existing losses without scoring. Also land imported files again.
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
