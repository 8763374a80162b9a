-- Incoming losses are all that are landed, whose sums are to be made.
create or replace temp view incoming as
select *
from chunk_losses;
