-- Landed monthly rates: the mean over their sources.
select
    model,
    month,
    avg(bits_per_byte) as bits_per_byte,
    count(*) as num_sources
from monthly_loss
where protocol = 'published' and bits_per_byte is not null and is_text
group by model, month
order by model, month
