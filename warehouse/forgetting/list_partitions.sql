-- The partitions that have a row of a document that is to be forgotten.
-- Input: documents_to_forget.
select
    source,
    month
from documents
semi join documents_to_forget using (document_id)
union
select
    source,
    month
from chunk_losses
semi join documents_to_forget using (document_id)
order by source, month;
