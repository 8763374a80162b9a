-- Chunks without a loss and models without a figure, by reason: nothing is left out in silence.
-- Grain: one row per model, source, month, protocol, left_out_of, reason.
-- left_out_of is NULL for chunks without a loss, which all figures leave out. Else it names a view
--   that has no row, or only NULL, for this model and source; month, num_chunks and num_bytes are
--   NULL. A reason that begins with "no interval" is of a figure without an interval over time.
--   Other views, such as control_adjusted_gap, state reasons in a column of their own.
--   Models that were scored here come first, then compressors, then published rates.
-- Units: counts; num_bytes is the UTF-8 length of the text (or the bytes) without a loss.
-- Source: reads chunk_losses, left_out_figures.
create or replace view unmeasured as
with found as (
    select
        model,
        source,
        month,
        protocol,
        cast(null as varchar) as left_out_of,
        reason,
        count(*) as num_chunks,
        cast(sum(num_bytes) as bigint) as num_bytes
    from chunk_losses
    where nll_nats is null
    group by model, source, month, protocol, reason
    union all by name
    select * from internal.left_out_figures
)

select
    model,
    source,
    case when source is null then 'all' else 'source' end as scope,
    month,
    protocol,
    left_out_of,
    reason,
    num_chunks,
    num_bytes
from found
order by
    protocol = 'published', starts_with(model, 'control:'), model, left_out_of nulls first, source,
    month, protocol, reason;
