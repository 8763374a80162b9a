-- Stage the landed losses of one partition, whose documents have changed.
insert into incoming
select *
from chunk_losses
where source = $source and month is not distinct from cast($month as date);
