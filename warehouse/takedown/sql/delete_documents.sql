-- Delete the documents of a takedown.
delete from documents
where document_id in (select document_id from documents_to_forget);
