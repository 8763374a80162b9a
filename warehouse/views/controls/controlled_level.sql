-- Each model's monthly curve without the variation shared with its control.
-- Grain: one row per model, protocol, source, month; source NULL: the mean over sources of text.
--   Compressors have no rows. For suspected_contamination and partial_change_points.
-- level = bits_per_byte - sensitivity * (control's figure - control's mean). sensitivity is the
--   least-squares coefficient between the month-to-month differences of both curves. Neither a
--   drift nor a cutoff changes it. It is 0 without a control, or if the control's curve is flat.
-- Units: bits per UTF-8 byte; is_after: month after the catalogue's cutoff; NULL without a cutoff.
-- Source: docs/metrics.md (Control-adjusted figures and change points).
create or replace view internal.controlled_level as
with steps as (
    select
        c.*,
        coalesce(c.control_bits_per_byte - avg(c.control_bits_per_byte) over curve, 0)
            as difficulty,
        c.bits_per_byte - lag(c.bits_per_byte) over months as dy,
        c.control_bits_per_byte - lag(c.control_bits_per_byte) over months as dc,
        1e-20 * sum(c.control_bits_per_byte * c.control_bits_per_byte) over curve as rounding
    from internal.controlled_curve as c
    where not starts_with(c.model, 'control:')
    window
        curve as (partition by c.model, c.protocol, c.source),
        months as (partition by c.model, c.protocol, c.source order by c.month)
),

sensitivities as (
    select
        *,
        case
            when sum(dc * dc) over curve > rounding
                then sum(dy * dc) over curve / sum(dc * dc) over curve
            else 0
        end as sensitivity
    from steps
    window curve as (partition by model, protocol, source)
)

select
    s.model,
    s.protocol,
    s.source,
    s.month,
    s.control,
    s.bits_per_byte,
    s.bits_per_byte - s.sensitivity * s.difficulty as level,
    s.month > m.cutoff as is_after
from sensitivities as s
left join main.models as m on s.model = m.model;
