-- Delete duplicate pairs with a document of a takedown.
delete from internal.duplicate_of
where
    document_id in (select document_id from documents_to_forget)
    or duplicate_of_document_id in (select document_id from documents_to_forget);
