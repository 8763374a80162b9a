-- The cells of version 1, whose provenance stays.
create or replace temp table touched as
select *
from former_cells;
