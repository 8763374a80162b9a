-- The size of an up-to-date model of the same family that predicts as well as a model aged by a
--   year.
-- Grain: one row per model, source, protocol; every model of ageing.
-- growth_per_year is that of ageing. bits_per_byte_per_e is the slope of bits per byte over the
--   natural logarithm of parameters: least squares over the models of the family. The figure of a
--   model is the mean over the months that all of these models have up to the earliest cutoff; if
--   there are none, after the latest cutoff.
-- equivalent_share = exp(growth_per_year / bits_per_byte_per_e). 0.6: after a year, an 8B model
--   predicts like a fresh one of 4.8B. *_low and *_high bound a 95 % interval: Fieller's, with the
--   intervals of both figures.
-- Units: bits per byte; parameters. Figures are NULL where reason says why.
-- Source: Fieller 1954, "Some problems in interval estimation"; docs/metrics.md (The panel).
create or replace view age_in_parameters as
with members as (
    select
        l.model,
        m.family,
        l.source,
        l.protocol,
        l.month,
        l.bits_per_byte,
        ln(m.parameters) as size,
        l.month > m.cutoff as is_after
    from internal.monthly_loss_details as l
    inner join main.models as m on l.model = m.model
    where
        m.family is not null
        and m.parameters > 0
        and m.cutoff is not null
        and l.bits_per_byte is not null
),

families as (
    select
        family,
        source,
        protocol,
        count(distinct model) as num_models
    from members
    group by family, source, protocol
),

shared_months as (
    select
        m.family,
        m.source,
        m.protocol,
        m.month,
        bool_or(m.is_after) as is_after
    from members as m
    inner join families as f
        on m.family = f.family and m.source = f.source and m.protocol = f.protocol
    group by m.family, m.source, m.protocol, m.month, f.num_models
    having count(*) = f.num_models and count(distinct m.is_after) = 1
    qualify bool_or(m.is_after) = min(bool_or(m.is_after)) over (
        partition by m.family, m.source, m.protocol
    )
),

means as (
    select
        m.model,
        m.family,
        m.source,
        m.protocol,
        m.size,
        avg(m.bits_per_byte) as bits_per_byte
    from members as m
    inner join shared_months as s
        on
            m.family = s.family
            and m.source = s.source
            and m.protocol = s.protocol
            and m.month = s.month
    group by m.model, m.family, m.source, m.protocol, m.size
),

lines as (
    select
        family,
        source,
        protocol,
        count(*) as num_models,
        count(distinct size) as num_sizes,
        case when count(distinct size) >= 3 then regr_slope(bits_per_byte, size) end as slope,
        regr_sxx(bits_per_byte, size) as squares_x,
        greatest(
            0, regr_syy(bits_per_byte, size)
            - power(regr_slope(bits_per_byte, size), 2) * regr_sxx(bits_per_byte, size)
        ) as squares
    from means
    group by family, source, protocol
),

slopes as (
    select
        *,
        case
            when num_sizes >= 3
                then t_975(num_models - 2) * sqrt(squares / ((num_models - 2) * squares_x))
        end as half
    from lines
),

judged as (
    select
        a.model,
        m.family,
        a.source,
        a.protocol,
        m.parameters,
        a.growth_per_year,
        a.growth_per_year_high - a.growth_per_year as growth_half,
        s.slope,
        s.half,
        s.num_sizes,
        case
            when m.family is null then 'family unknown'
            when m.parameters is null then 'parameters unknown'
            when a.reason is not null then a.reason
            when coalesce(s.num_sizes, 0) < minimum('sizes of a family')
                then
                    too_few(
                        coalesce(s.num_sizes, 0), 'size', ' of the family on the same months',
                        'sizes of a family'
                    )
            when s.slope + s.half >= 0
                then 'not told from chance that larger models of the family are better'
        end as reason
    from ageing as a
    left join main.models as m on a.model = m.model
    left join slopes as s
        on m.family = s.family and a.source = s.source and a.protocol = s.protocol
    where a.source is not null
),

-- Fieller: all ratios r with (growth - r slope)^2 <= growth_half^2 + r^2 half^2.
roots as (
    select
        *,
        growth_per_year / nullif(slope, 0) as ratio,
        nullif(slope * slope - half * half, 0) as divisor,
        sqrt(
            greatest(
                0, power(growth_per_year * half, 2)
                + power(slope * growth_half, 2)
                - power(half * growth_half, 2)
            )
        ) as spread
    from judged
)

select
    model,
    family,
    source,
    protocol,
    parameters,
    case when reason is null then exp(ratio) end as equivalent_share,
    case
        when reason is null then exp((growth_per_year * slope - spread) / divisor)
    end as equivalent_share_low,
    case
        when reason is null then exp((growth_per_year * slope + spread) / divisor)
    end as equivalent_share_high,
    case when reason is null then parameters * exp(ratio) end as equivalent_parameters,
    growth_per_year,
    slope as bits_per_byte_per_e,
    num_sizes,
    reason
from roots;
