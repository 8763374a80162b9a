-- Comparison of one cell's landed losses with rescored losses: sums, and the largest difference of
-- a chunk. A chunk is unmatched if only one side has or measured it, or if it covers other text.
-- Grain: one row.
-- Units: nats.
-- Input: rescored_losses, Arrow data of schema LOSSES.
with landed as (
    select
        document_id,
        chunk_index,
        nll_nats,
        num_tokens,
        num_chars,
        num_bytes
    from chunk_losses
    where
        model = $model
        and source = $source
        and month is not distinct from cast($month as date)
        and protocol = $protocol
),

rescored as (
    select
        document_id,
        chunk_index,
        case when not isnan(nll_nats) then nll_nats end as nll_nats,
        num_tokens,
        num_chars,
        num_bytes
    from rescored_losses
),

pairs as (
    select
        landed.nll_nats as landed_nats,
        rescored.nll_nats as rescored_nats,
        landed.document_id is null
        or rescored.document_id is null
        or (landed.nll_nats is null) <> (rescored.nll_nats is null)
        or landed.num_tokens <> rescored.num_tokens
        or landed.num_chars <> rescored.num_chars
        or landed.num_bytes <> rescored.num_bytes as is_unmatched
    from landed
    full outer join rescored
        on
            landed.document_id = rescored.document_id
            and landed.chunk_index = rescored.chunk_index
)

select
    count(*) as num_chunks,
    count(*) filter (where is_unmatched) as num_unmatched,
    coalesce(sum(landed_nats), 0) as landed_nats,
    coalesce(sum(rescored_nats), 0) as rescored_nats,
    coalesce(max(abs(rescored_nats - landed_nats)), 0) as largest_chunk_nats
from pairs;
