-- Record documents that were taken down; those that are recorded already stay as they are.
-- Input: documents_to_forget, Arrow data with the columns of the table.
insert into forgotten_documents by name
select given.*
from documents_to_forget as given
anti join forgotten_documents as recorded on given.document_id = recorded.document_id;
