-- Incoming losses are those that are staged.
create or replace temp view incoming as
select *
from staged;
