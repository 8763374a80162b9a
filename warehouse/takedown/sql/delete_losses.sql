-- Delete the losses of the documents of a takedown.
delete from chunk_losses
where document_id in (select document_id from documents_to_forget);
