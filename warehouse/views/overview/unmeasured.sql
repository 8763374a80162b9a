-- Chunks without a loss, by reason: every chunk that figures leave out is counted.
-- Grain: one row per model, source, month, protocol, reason.
-- Units: counts; num_bytes is the UTF-8 length of the text (or the bytes) without a loss.
-- Source: reads chunk_losses.
create or replace view unmeasured as
select
    model,
    source,
    month,
    protocol,
    reason,
    count(*) as num_chunks,
    cast(sum(num_bytes) as bigint) as num_bytes
from chunk_losses
where nll_nats is null
group by model, source, month, protocol, reason;
