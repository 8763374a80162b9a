-- Define incoming losses as the staged losses.
create or replace temp view incoming as
select *
from staged;
