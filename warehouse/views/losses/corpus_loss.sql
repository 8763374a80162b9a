-- What a model's losses on an undated corpus come to.
-- Grain: one row per model, source, protocol.
-- Units: as the names say; compression_rate is a fraction (compressed size / raw size).
-- Source: metrics.md, section 1. Reads chunk_losses and landed_cells, where month is NULL.
create or replace view corpus_loss as
with sums as (
    select
        model,
        source,
        protocol,
        fsum(nll_nats) as nll_nats,
        cast(sum(num_tokens) filter (where nll_nats is not null) as bigint) as num_tokens,
        cast(sum(num_chars) filter (where nll_nats is not null) as bigint) as num_chars,
        cast(sum(num_bytes) filter (where nll_nats is not null) as bigint) as num_bytes
    from chunk_losses
    where month is null
    group by model, source, protocol
)

select
    sums.model,
    sums.source,
    sums.protocol,
    cells.num_documents,
    cells.num_chunks,
    cells.num_unmeasured,
    sums.nll_nats,
    sums.num_tokens,
    sums.num_chars,
    sums.num_bytes,
    sums.nll_nats / (ln(2) * nullif(sums.num_bytes, 0)) as bits_per_byte,
    sums.nll_nats / (ln(2) * nullif(sums.num_chars, 0)) as bits_per_char,
    sums.nll_nats / (ln(2) * nullif(sums.num_tokens, 0)) as bits_per_token,
    sums.nll_nats / nullif(sums.num_chars, 0) as nats_per_char,
    sums.nll_nats / (8 * ln(2) * nullif(sums.num_bytes, 0)) as compression_rate
from sums
inner join landed_cells as cells
    on
        sums.model = cells.model
        and sums.source = cells.source
        and sums.protocol = cells.protocol
where cells.month is null;
