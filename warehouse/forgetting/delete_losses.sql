-- Forget the losses on some documents.
delete from chunk_losses
where document_id in (select document_id from documents_to_forget);
