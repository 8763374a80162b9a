-- The figure itself is replicate 0, and there are 200 others where clusters can be resampled.
select
    month,
    count(*) as num_rows,
    max(replicate) as last_replicate,
    bool_and(is_text) as is_text,
    any_value(bits_per_byte) filter (where replicate = 0) as bits_per_byte
from internal.replicate_monthly_loss
group by month;
