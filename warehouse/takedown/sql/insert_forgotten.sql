-- Record documents of a takedown; skip documents that are recorded already.
-- Input: documents_to_forget, Arrow data with the columns of the table.
insert into internal.forgotten_documents by name
select given.*
from documents_to_forget as given
anti join internal.forgotten_documents as recorded on given.document_id = recorded.document_id;
