-- Land the documents of one partition.
-- Input: documents_to_land, Arrow data of schema DOCUMENTS without the text; event_time in UTC.
-- Imported records have their date in extra.
insert into documents by name
select
    document_id,
    source,
    month,
    category,
    language,
    licence,
    cluster_id,
    num_chars,
    num_bytes,
    title,
    url,
    coalesce(
        cast(event_time as date),
        try_cast(
            nullif(regexp_extract(extra, '"date": "(\d{4}-\d{2}-\d{2})', 1), '') as date
        )
    ) as event_date,
    native_id
from documents_to_land;
