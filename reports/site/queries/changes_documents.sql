-- Documents of each source and month that any model was scored on.
select
    source || '/' || strftime(month, '%Y-%m') as partition,
    max(num_documents) as num_documents
from monthly_loss
where protocol = $protocol and bits_per_byte is not null
group by source, month
order by source, month
