-- Cells whose sums differ from the sums over their measured chunks. Cells with missing rows or
-- invalid losses are skipped: other checks find them.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.
with sums as (
    select
        model,
        revision,
        source,
        month,
        protocol,
        count(*) as num_chunks,
        count(*) filter (where nll_nats is null and reason = 'non_finite') as num_not_finite,
        sum(nll_nats) as nll_nats,
        sum(num_tokens) filter (where nll_nats is not null) as num_tokens,
        sum(num_chars) filter (where nll_nats is not null) as num_chars,
        sum(num_bytes) filter (where nll_nats is not null) as num_bytes
    from chunk_losses
    group by model, revision, source, month, protocol
    having bool_and(coalesce(nll_nats >= 0 and isfinite(nll_nats), true))
)

select
    cells.model,
    cells.source,
    cells.month,
    cells.protocol,
    cells.nll_nats as nll_nats_recorded,
    sums.nll_nats as nll_nats_of_chunks,
    cells.num_tokens as num_tokens_recorded,
    sums.num_tokens as num_tokens_of_chunks,
    cells.num_bytes as num_bytes_recorded,
    sums.num_bytes as num_bytes_of_chunks
from internal.landed_cells as cells
inner join sums
    on
        cells.model = sums.model
        and cells.revision = sums.revision
        and cells.source = sums.source
        and cells.month is not distinct from sums.month
        and cells.protocol = sums.protocol
        and cells.num_chunks = sums.num_chunks
where
    cells.num_not_finite <> sums.num_not_finite
    or cells.num_tokens is distinct from sums.num_tokens
    or cells.num_chars is distinct from sums.num_chars
    or cells.num_bytes is distinct from sums.num_bytes
    or (cells.nll_nats is null) <> (sums.nll_nats is null)
    -- Landing adds multiples of 2^-40 exactly, this sum rounds.
    or abs(cells.nll_nats - sums.nll_nats) > 1e-9 * sums.nll_nats + 1e-12 * sums.num_chunks
order by cells.model, cells.source, cells.month, cells.protocol;
