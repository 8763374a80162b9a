-- Land the documents of one partition.
-- Input: documents_to_land, Arrow data of schema DOCUMENTS without the text.
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
    num_bytes
from documents_to_land;
