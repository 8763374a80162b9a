-- Bits per byte of each model and month.
select
    source,
    model,
    month,
    bits_per_byte,
    bits_per_byte_low,
    bits_per_byte_high
from monthly_loss
where protocol = $protocol and bits_per_byte is not null
order by source, model, month
