-- The first touched cell that was scored here.
select
    model,
    source,
    month,
    protocol
from touched
where partition_digest is not null
order by model, source, month, protocol
limit 1;
