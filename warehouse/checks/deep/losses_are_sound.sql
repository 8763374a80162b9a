-- Losses that are negative, infinite or NaN, and negative counts.
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
    num_tokens,
    num_chars,
    num_bytes
from chunk_losses
where
    nll_nats < 0
    or not isfinite(nll_nats)
    or chunk_index < 0
    or num_tokens < 0
    or num_chars < 0
    or num_bytes < 0;
