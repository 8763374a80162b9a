-- One row per model, source and month: bits per byte less what the month's difficulty explains, and
-- less the model's level up to its cutoff (over all months if there is none).
-- rise: bits per byte above the model's level up to its cutoff, less the month's difficulty [bits
--   per byte]
-- is_adjusted: True if other models tell how hard the month is, so that it is taken off
-- stated_end: first day after the month that the maker states as cutoff [date]
-- measured_begin: first day of the interval of the measured cutoff [date]
-- measured_end: first day after the interval of the measured cutoff [date]
-- is_after: True if the month is after the stated cutoff
-- is_first: True in one row of each line, which has its marks
with adjusted as (
    select
        l.model,
        l.source,
        l.month,
        l.bits_per_byte,
        m.cutoff,
        d.difficulty is not null as is_adjusted,
        l.bits_per_byte - coalesce(s.sensitivity, 1) * coalesce(d.difficulty, 0) as adjusted
    from monthly_loss as l
    inner join models as m on l.model = m.model
    left join month_difficulty as d
        on l.source = d.source and l.protocol = d.protocol and l.month = d.month
    left join model_sensitivity as s
        on l.model = s.model and l.source = s.source and l.protocol = s.protocol
    where l.protocol = $protocol and l.bits_per_byte is not null
),

levelled as (
    select
        *,
        adjusted - coalesce(
            avg(adjusted) filter (month <= cutoff) over (partition by model, source),
            avg(adjusted) over (partition by model, source)
        ) as rise
    from adjusted
)

select
    l.model,
    l.source,
    l.month,
    l.bits_per_byte,
    l.rise,
    l.is_adjusted,
    l.cutoff + interval 1 month as stated_end,
    case when c.estimated_cutoff is not null then c.estimated_cutoff_low end as measured_begin,
    case when c.estimated_cutoff is not null then c.estimated_cutoff_high + interval 1 month end
        as measured_end,
    coalesce(l.month > l.cutoff, false) as is_after,
    row_number() over (partition by l.model, l.source order by l.month) = 1 as is_first
from levelled as l
left join estimated_cutoff as c
    on l.model = c.model and l.source = c.source and c.protocol = $protocol
order by l.model, l.source, l.month
