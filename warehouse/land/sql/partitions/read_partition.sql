-- Define incoming losses as the landed losses of one partition, whose documents have changed.
create or replace temp view incoming as
select losses.*
from chunk_losses as losses
inner join partition_to_read as wanted
    on losses.source = wanted.source and losses.month is not distinct from wanted.month;
