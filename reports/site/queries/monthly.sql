-- Measured months of a protocol.
select *
from monthly_loss
where protocol = $protocol and bits_per_byte is not null
order by model, source, month
