-- The figure itself is replicate 0, and there are 200 others.
select
    month,
    count(*) as num_rows,
    max(replicate) as last_replicate,
    any_value(bits_per_byte) filter (where replicate = 0) as bits_per_byte
from replicate_monthly_loss
group by month;
