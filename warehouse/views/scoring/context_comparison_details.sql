-- Every column of context_comparison. Units and NULLs: see that view.
-- Grain: one row per model, source, protocol.
create or replace view internal.context_comparison_details as
with cells as materialized (
    select
        model,
        source,
        month,
        protocol,
        nll_nats / (ln(2) * num_bytes) as bits_per_byte,
        num_tokens,
        num_bytes
    from internal.sound_cells
    where num_bytes > 0
),

num_protocols as (
    select
        model,
        source,
        count(distinct protocol) as num_protocols
    from cells
    group by model, source
),

shared as (
    select
        cells.model,
        cells.source,
        cells.month
    from cells
    inner join num_protocols as n on cells.model = n.model and cells.source = n.source
    group by cells.model, cells.source, cells.month
    having count(*) = any_value(n.num_protocols)
),

sums as (
    select
        cells.model,
        cells.source,
        cells.protocol,
        count(*) as num_cells,
        avg(cells.bits_per_byte) as bits_per_byte,
        cast(sum(cells.num_tokens) as bigint) as num_tokens,
        cast(sum(cells.num_bytes) as bigint) as num_bytes,
        count(c.seconds) = count(*) as has_records,
        cast(sum(c.num_tokens_read) as bigint) as num_tokens_read,
        sum(c.seconds) as seconds,
        max(c.peak_memory_bytes) as peak_memory_bytes,
        case when count(c.energy_joules) = count(*) then sum(c.energy_joules) end as energy_joules,
        case when min(c.context) = max(c.context) then min(c.context) end as context,
        case when min(c.device) = max(c.device) then min(c.device) end as device,
        case when min(c.dtype) = max(c.dtype) then min(c.dtype) end as dtype
    from cells
    semi join shared
        on
            cells.model = shared.model
            and cells.source = shared.source
            and cells.month is not distinct from shared.month
    left join main.cell_costs as c
        on
            cells.model = c.model
            and cells.source = c.source
            and cells.month is not distinct from c.month
            and cells.protocol = c.protocol
    group by cells.model, cells.source, cells.protocol
)

select
    s.model,
    s.source,
    s.protocol,
    case when s.has_records then s.context end as context,
    cast(p.definition ->> '$.stride' as bigint) as stride,
    s.num_cells,
    s.num_tokens,
    s.num_bytes,
    s.bits_per_byte,
    s.bits_per_byte / 8 as compression_rate,
    case when s.has_records then s.seconds end as seconds,
    case when s.has_records then s.num_tokens / nullif(s.seconds, 0) end as tokens_per_second,
    case when s.has_records then s.num_tokens_read / nullif(s.seconds, 0) end
        as tokens_read_per_second,
    case when s.has_records then 1e6 * s.seconds / s.num_bytes end as seconds_per_megabyte,
    case when s.has_records then s.peak_memory_bytes end as peak_memory_bytes,
    s.energy_joules,
    case when s.has_records then s.device end as device,
    case when s.has_records then s.dtype end as dtype
from sums as s
left join main.protocols as p on s.protocol = p.protocol;
