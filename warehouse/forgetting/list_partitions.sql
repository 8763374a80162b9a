-- The partitions that have a row of a document that is to be forgotten.
-- Input: documents_to_forget.
select
    source,
    month
from documents
where document_id in (select document_id from documents_to_forget)
union
select
    source,
    month
from chunk_losses
where document_id in (select document_id from documents_to_forget)
union
select
    source,
    month
from duplicate_of
where
    document_id in (select document_id from documents_to_forget)
    or duplicate_of_document_id in (select document_id from documents_to_forget)
order by source, month;
