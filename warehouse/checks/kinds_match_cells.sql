-- Cells whose sums by kind are more than the sums of the cell, and sums by kind without a cell.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.
with kinds as (
    select
        model,
        source,
        month,
        protocol,
        sum(num_bytes) as num_bytes_of_kinds,
        sum(nll_nats) as nll_nats_of_kinds
    from internal.cell_kinds
    group by model, source, month, protocol
)

select
    kinds.*,
    cells.num_bytes,
    cells.nll_nats
from kinds
left join internal.landed_cells as cells
    on
        kinds.model = cells.model
        and kinds.source = cells.source
        and kinds.month is not distinct from cells.month
        and kinds.protocol = cells.protocol
where
    coalesce(
        kinds.num_bytes_of_kinds > cells.num_bytes
        or kinds.nll_nats_of_kinds > cells.nll_nats * (1 + 1e-9) + 1e-9,
        true
    );
