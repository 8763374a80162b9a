-- Chunks without a loss that do not say why, and chunks with a loss that say why it is missing.
-- Do: Delete the writer's database (work/writer.duckdb) and run `tidemark score` again: what is
--   scored only lands. Land files from elsewhere again, too.
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
