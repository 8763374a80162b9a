-- From version 1: store the sums of cells that views used to compute from chunk_losses (ADR 0015).
-- The statements of landing compute the sums, after landed_cells has been created again.
alter table schema_version add column definitions varchar;
alter table landed_cells rename to former_cells;
