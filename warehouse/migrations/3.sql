-- From version 2: cells and partitions name the version of the text (ADR 0018). What they were is
-- put into the tables of today once these are made; the cells of version 1 are former ones already.
alter table if exists landed_cells rename to former_cells;
alter table landed_partitions rename to former_partitions;
