-- Bootstrap replicates of a cell's sums over its measured chunks, for intervals.
-- Grain: one row per model, source, month, protocol, replicate (1 to 200).
--   Cells with a single cluster have no rows.
-- Units: nats and UTF-8 bytes, each document weighted by its cluster's Poisson(1) weight.
-- Computed from chunk_losses and documents only; see insert_replicates in land/losses.sql.
create table if not exists internal.cell_replicates (
    model varchar not null,
    source varchar not null,
    month date,
    protocol varchar not null,
    replicate smallint not null,
    nll_nats double not null,
    num_bytes double not null
);
