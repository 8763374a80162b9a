-- The three documents of each source's last month that cost a model most.
-- document: title of the document, or its address or id
-- url: address of the document; NULL if a program made up the text
with last_months as (
    select
        model,
        source,
        max(month) as month
    from monthly_loss
    where protocol = $protocol and bits_per_byte is not null
    group by model, source
)

select
    w.model,
    w.source,
    w.month,
    w.position,
    coalesce(w.title, w.url, w.document_id) as document,
    case when s.source is null then w.url end as url,
    w.bits_per_byte,
    w.num_bytes
from worst_documents as w
inner join last_months as l on w.model = l.model and w.source = l.source and w.month = l.month
left join simulated_sources as s on w.source = s.source
where w.protocol = $protocol and w.position <= 3
order by w.model, w.source, w.position
