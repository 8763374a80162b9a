-- How much each curve of a source changes at a month: the mean of the month and the next two, less
--   the mean of the three before. For jump_origin.
-- Grain: one row per source, protocol, curve, model, month; only with two months on each side.
--   curve: difficulty (of month_difficulty), compressor (control:zstd), or model: a language
--   model's figure less sensitivity * difficulty. model is NULL for the first two.
-- Units: bits per byte. error: 1.4826 * median absolute deviation of the curve's other jumps,
--   without the two months around; at least that of independent months with the curve's median
--   change from month to month; for models, at least the median of the models' errors.
-- is_jump: the jump, less the median of the others, is above 3.7 + 28 / (months - 10) errors, and
--   beyond the panel's own 95 % interval. Of simulated curves of 18 to 60 months without a jump, at
--   most one in fifty has one, white or AR(0.5).
-- is_peak: no jump of the curve within two months is larger.
-- Source: docs/metrics.md (Jumps).
create or replace view internal.curve_jumps as
with curves as (
    select
        source,
        protocol,
        month,
        'difficulty' as curve,
        null as model,
        difficulty as y,
        difficulty_error as y_error,
        degrees_of_freedom
    from internal.panel_difficulty
    where source is not null
    union all by name
    select
        source,
        protocol,
        month,
        'compressor' as curve,
        null as model,
        compressor_difficulty as y
    from internal.panel_difficulty
    where source is not null
    union all by name
    select
        s.source,
        s.protocol,
        l.month,
        'model' as curve,
        s.model,
        l.bits_per_byte - s.sensitivity * d.difficulty as y
    from main.model_sensitivity as s
    inner join internal.monthly_loss_details as l
        on s.model = l.model and s.source = l.source and s.protocol = l.protocol
    inner join internal.panel_difficulty as d
        on s.source = d.source and s.protocol = d.protocol and l.month = d.month
),

points as (
    select
        * replace (coalesce(model, '') as model),
        year(month) * 12 + month(month) as month_number
    from curves
    where y is not null
),

changes as (
    select
        *,
        case
            when month_number - lag(month_number) over curve_months = 1
                then abs(y - lag(y) over curve_months)
        end as change
    from points
    window
        curve_months as (partition by source, protocol, curve, model order by month_number)
),

sides as (
    select
        *,
        count(*) over (partition by source, protocol, curve, model) as num_months,
        1.4826e0 / sqrt(2) * median(change) over (partition by source, protocol, curve, model)
            as noise,
        avg(y) over after - avg(y) over before as jump,
        sqrt(1 / count(*) over after + 1 / count(*) over before) as scale,
        sqrt(
            avg(power(y_error, 2)) over after / count(*) over after
            + avg(power(y_error, 2)) over before / count(*) over before
        ) as jump_error
    from changes
    window
        before as (
            partition by source, protocol, curve, model
            order by month_number range between 3 preceding and 1 preceding
        ),
        after as (
            partition by source, protocol, curve, model
            order by month_number range between current row and 2 following
        )
    qualify count(*) over before >= 2 and count(*) over after >= 2
),

others as (
    select
        a.source,
        a.protocol,
        a.curve,
        a.model,
        a.month_number,
        b.jump / b.scale as other,
        median(b.jump / b.scale) over (
            partition by a.source, a.protocol, a.curve, a.model, a.month_number
        ) as centre
    from sides as a
    inner join sides as b
        on
            a.source = b.source
            and a.protocol = b.protocol
            and a.curve = b.curve
            and a.model = b.model
            and abs(a.month_number - b.month_number) >= 3
),

spreads as (
    select
        source,
        protocol,
        curve,
        model,
        month_number,
        any_value(centre) as centre,
        1.4826e0 * median(abs(other - centre)) as spread
    from others
    group by source, protocol, curve, model, month_number
),

measured as (
    select
        a.*,
        s.centre * a.scale as centre,
        a.scale * greatest(
            s.spread,
            a.noise,
            median(s.spread) over (partition by a.source, a.protocol, a.curve, a.month_number)
        ) as error
    from sides as a
    inner join spreads as s
        on
            a.source = s.source
            and a.protocol = s.protocol
            and a.curve = s.curve
            and a.model = s.model
            and a.month_number = s.month_number
    where a.num_months >= minimum('months of a jump')
)

select
    source,
    protocol,
    curve,
    nullif(model, '') as model,
    month,
    jump,
    error,
    abs(jump - centre) > (3.7e0 + 28 / (num_months - 10)) * error
    and abs(jump) > coalesce(t_975(degrees_of_freedom) * jump_error, 0) as is_jump,
    abs(jump - centre) >= max(abs(jump - centre)) over (
        partition by source, protocol, curve, model
        order by month_number range between 2 preceding and 2 following
    ) as is_peak
from measured;
