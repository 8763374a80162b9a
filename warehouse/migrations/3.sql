-- From version 2: cells and partitions state the version of the text (ADR 0018). Former rows are
-- copied into the present tables after their creation. Cells of version 1 are former rows already.
alter table if exists landed_cells rename to former_cells;
alter table landed_partitions rename to former_partitions;
