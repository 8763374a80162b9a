-- The partitions with rows of the documents of a takedown.
-- Input: documents_to_forget; duplicates_to_search, the table duplicate_of.
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
from duplicates_to_search
where
    document_id in (select document_id from documents_to_forget)
    or duplicate_of_document_id in (select document_id from documents_to_forget)
order by source, month;
