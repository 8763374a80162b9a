-- From version 1: cells get the sums that views used to make from chunk_losses at every reading
-- (ADR 0015). Landing's own statements make them, once landed_cells has been made anew.
alter table schema_version add column definitions varchar;
alter table landed_cells rename to former_cells;
