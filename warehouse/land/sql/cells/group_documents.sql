-- Sums over the incoming chunks of each document.
-- may_have_twins: true if a chunk may be duplicate. For the first 62 chunks of a document, a sum of
-- powers of two decides exactly. For longer documents, find_duplicate decides.
create or replace temp table incoming_documents as
select
    cells.cell,
    i.document_id,
    count(*) as num_chunks,
    count(i.nll_nats) as num_measured,
    count(*) filter (where i.nll_nats is null and i.reason = 'non_finite') as num_not_finite,
    sum(i.nll_nats) as nll_nats,
    sum(i.num_tokens) filter (where i.nll_nats is not null) as num_tokens,
    sum(i.num_chars) filter (where i.nll_nats is not null) as num_chars,
    sum(i.num_bytes) filter (where i.nll_nats is not null) as num_bytes,
    count(*) > bit_count(bit_or(cast(1 as bigint) << (i.chunk_index % 62))) as may_have_twins
from incoming as i
inner join incoming_cells as cells
    on
        i.model = cells.model
        and i.revision = cells.revision
        and i.source = cells.source
        and i.month is not distinct from cells.month
        and i.protocol = cells.protocol
group by cells.cell, i.document_id;
