-- Sums over the incoming chunks of each document, and whether a chunk comes more than once.
-- Chunks are grouped 62 at a time: a sum of powers of two differs from their bitwise or exactly
-- where a power comes twice. That is a third of the cost of grouping by chunk.
create or replace temp table incoming_documents as
with blocks as (
    select
        model,
        revision,
        source,
        month,
        protocol,
        document_id,
        count(*) as num_chunks,
        count(nll_nats) as num_measured,
        count(*) filter (where nll_nats is null and reason = 'non_finite') as num_not_finite,
        sum_exactly(nll_nats) as nll_nats,
        sum(num_tokens) filter (where nll_nats is not null) as num_tokens,
        sum(num_chars) filter (where nll_nats is not null) as num_chars,
        sum(num_bytes) filter (where nll_nats is not null) as num_bytes,
        sum(cast(1 as bigint) << (chunk_index % 62))
        <> bit_or(cast(1 as bigint) << (chunk_index % 62)) as has_twins
    from incoming
    group by model, revision, source, month, protocol, document_id, chunk_index // 62
)

select
    model,
    revision,
    source,
    month,
    protocol,
    document_id,
    cast(sum(num_chunks) as bigint) as num_chunks,
    cast(sum(num_measured) as bigint) as num_measured,
    cast(sum(num_not_finite) as bigint) as num_not_finite,
    sum_exactly(nll_nats) as nll_nats,
    cast(sum(num_tokens) as bigint) as num_tokens,
    cast(sum(num_chars) as bigint) as num_chars,
    cast(sum(num_bytes) as bigint) as num_bytes,
    bool_or(has_twins) as has_twins
from blocks
group by model, revision, source, month, protocol, document_id;
