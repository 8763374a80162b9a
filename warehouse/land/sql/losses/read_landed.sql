-- Define incoming losses as all landed losses, to compute their sums.
create or replace temp view incoming as
select *
from chunk_losses;
