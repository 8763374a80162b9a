-- What a model's losses on a source come to, month by month.
-- Grain: one row per model, source, protocol, month. Undated text is left out.
-- Units: as the names say; compression_rate is a fraction (compressed size / raw size).
-- Unmeasured chunks are counted, but neither their losses nor their text enter the ratios.
-- Where one is non_finite, sums and ratios are NULL: the model broke on text that it should have
--   measured, and what is left is not a figure of the month.
-- is_text: images and recordings have no characters; a mean over sources of both means nothing.
-- Source: metrics.md, section 1 (ratio of sums over the month's documents). Reads chunk_losses for
-- the sums (compensated, so that the order of rows does not show) and landed_cells for the counts.
create or replace view monthly_loss as
with sums as (
    select
        model,
        source,
        protocol,
        month,
        fsum(nll_nats) as nll_nats,
        cast(sum(num_tokens) as bigint) as num_tokens,
        cast(sum(num_chars) as bigint) as num_chars,
        cast(sum(num_bytes) as bigint) as num_bytes
    from chunk_losses
    where month is not null and (nll_nats is not null or reason = 'non_finite')
    group by model, source, protocol, month
    having count(nll_nats) = count(*)
)

select
    cells.model,
    cells.source,
    cells.protocol,
    cells.month,
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
    sums.nll_nats / (8 * ln(2) * nullif(sums.num_bytes, 0)) as compression_rate,
    sums.num_chars > 0 as is_text
from landed_cells as cells
left join sums
    on
        cells.model = sums.model
        and cells.source = sums.source
        and cells.protocol = sums.protocol
        and cells.month = sums.month
where cells.month is not null;
