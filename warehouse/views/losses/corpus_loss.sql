-- What a model's losses on an undated corpus come to.
-- Grain: one row per model, source, protocol.
-- Units: as the names say; compression_rate is a fraction (compressed size / raw size). Sums and
--   ratios are NULL where a loss is not finite, as in monthly_loss.
-- Source: metrics.md, section 1. Reads chunk_losses and landed_cells, where month is NULL.
create or replace view corpus_loss as
with sums as (
    select
        model,
        source,
        protocol,
        fsum(nll_nats) as nll_nats,
        cast(sum(num_tokens) as bigint) as num_tokens,
        cast(sum(num_chars) as bigint) as num_chars,
        cast(sum(num_bytes) as bigint) as num_bytes
    from chunk_losses
    where month is null and (nll_nats is not null or reason = 'non_finite')
    group by model, source, protocol
    having count(nll_nats) = count(*)
)

select
    cells.model,
    cells.source,
    cells.protocol,
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
from landed_cells as cells
left join sums
    on
        cells.model = sums.model
        and cells.source = sums.source
        and cells.protocol = sums.protocol
where cells.month is null;
