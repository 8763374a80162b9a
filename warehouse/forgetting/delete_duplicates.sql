-- Forget that some documents duplicate others, or are duplicated.
delete from duplicate_of
where
    document_id in (select document_id from documents_to_forget)
    or duplicate_of_document_id in (select document_id from documents_to_forget);
