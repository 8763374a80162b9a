-- Monthly curves of each model and of control:zstd, by source and as the mean over sources.
-- Grain: one row per model, protocol, source, month. For other views to read.
-- source NULL: the mean over the model's sources of text. If the set of sources changed between
--   months, the mean would jump. So the mean has only months that all its sources have. It leaves
--   out sources with less than half of the months of the source with the most months.
-- Months in which the control measured other documents are left out: the curve would jump there.
-- control: control:zstd if it has every month of the curve (of every source of a mean), else NULL;
--   control_bits_per_byte is NULL if control is NULL.
-- Units: bits per UTF-8 byte.
-- Source: docs/metrics.md (Control-adjusted figures and change points).
create or replace view internal.controlled_curve as
with controls as (
    select
        protocol,
        source,
        month,
        fingerprint,
        nll_nats / (ln(2) * num_bytes) as bits_per_byte
    from internal.sound_cells
    where model = 'control:zstd' and month is not null and num_bytes > 0
),

pairs as (
    select
        m.model,
        m.protocol,
        m.source,
        m.month,
        m.is_text,
        m.bits_per_byte,
        c.bits_per_byte as control_bits_per_byte
    from internal.monthly_loss_details as m
    left join internal.sound_cells as cell
        on
            m.model = cell.model
            and m.protocol = cell.protocol
            and m.source = cell.source
            and m.month = cell.month
    left join controls as c on m.protocol = c.protocol and m.source = c.source and m.month = c.month
    where
        m.bits_per_byte is not null
        and coalesce(cell.fingerprint = c.fingerprint, true)
),

sources as (
    select
        model,
        protocol,
        source,
        2 * count(*) >= max(count(*)) over (partition by model, protocol) as is_kept
    from pairs
    where is_text
    group by model, protocol, source
),

kept as (
    select
        p.*,
        count(distinct p.source) over (partition by p.model, p.protocol) as num_sources
    from pairs as p
    semi join sources as s
        on
            p.model = s.model
            and p.protocol = s.protocol
            and p.source = s.source
            and s.is_kept
),

means as (
    select
        model,
        protocol,
        cast(null as varchar) as source,
        month,
        avg(bits_per_byte) as bits_per_byte,
        case when count(control_bits_per_byte) = count(*) then avg(control_bits_per_byte) end
            as control_bits_per_byte
    from kept
    group by model, protocol, month
    having count(*) = any_value(num_sources)
),

curves as (
    select
        model,
        protocol,
        source,
        month,
        bits_per_byte,
        control_bits_per_byte
    from pairs
    union all
    from means
),

checked as (
    select
        *,
        count(control_bits_per_byte) over curve = count(*) over curve as is_controlled
    from curves
    window curve as (partition by model, protocol, source)
)

select
    model,
    protocol,
    source,
    month,
    bits_per_byte,
    case when is_controlled then 'control:zstd' end as control,
    case when is_controlled then control_bits_per_byte end as control_bits_per_byte
from checked;
