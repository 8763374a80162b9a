-- Delete staged rows that equal their landed rows.
delete from staged as i
using chunk_losses as landed
where
    i.model = landed.model
    and i.revision = landed.revision
    and i.source = landed.source
    and i.month is not distinct from landed.month
    and i.protocol = landed.protocol
    and i.document_id = landed.document_id
    and i.chunk_index = landed.chunk_index
    and i.nll_nats is not distinct from landed.nll_nats
    and i.num_tokens = landed.num_tokens
    and i.num_chars = landed.num_chars
    and i.num_bytes = landed.num_bytes
    and i.reason is not distinct from landed.reason;
