-- Bits per byte of each model and month.
-- is_new: True if the month is after the model's cutoff, or the model is a compressor
select
    l.source,
    l.model,
    l.month,
    l.bits_per_byte,
    l.bits_per_byte_low,
    l.bits_per_byte_high,
    t.known_by = 'compressor' or l.month > t.last_month as is_new
from monthly_loss as l
left join training_ends as t on l.model = t.model
where l.protocol = $protocol and l.bits_per_byte is not null
order by l.source, l.model, l.month
