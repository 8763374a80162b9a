-- One row per model and month: bits per byte less what the month's difficulty explains, and less
-- the model's level up to its cutoff (over all months if there is none); the mean over sources.
-- rise: bits per byte above the model's level up to its cutoff, less the month's difficulty [bits
--   per byte]
-- is_adjusted: True if other models tell how hard the month is, so that it is taken off
-- stated_end: first day after the month that the maker states as cutoff [date]
-- measured_begin: first day of the interval of the measured cutoff [date]
-- measured_end: first day after the interval of the measured cutoff [date]
-- is_after: True if the month is after the stated cutoff
-- is_first: True in one row of each line, which has its marks
-- num_sources: sources in the mean [sources]
with adjusted as (
    select
        l.model,
        l.source,
        l.month,
        m.cutoff,
        d.difficulty is not null as is_adjusted,
        l.bits_per_byte - coalesce(s.sensitivity, 1) * coalesce(d.difficulty, 0) as bits_per_byte
    from monthly_loss as l
    inner join models as m on l.model = m.model
    left join month_difficulty as d
        on l.source = d.source and l.protocol = d.protocol and l.month = d.month
    left join model_sensitivity as s
        on l.model = s.model and l.source = s.source and l.protocol = s.protocol
    where
        l.protocol = $protocol and l.is_text and l.bits_per_byte is not null
        and l.model not like 'control:%'
),

levelled as (
    select
        model,
        month,
        cutoff,
        is_adjusted,
        bits_per_byte - coalesce(
            avg(bits_per_byte) filter (month <= cutoff) over (partition by model, source),
            avg(bits_per_byte) over (partition by model, source)
        ) as rise
    from adjusted
)

select
    l.model,
    l.month,
    avg(l.rise) as rise,
    bool_or(l.is_adjusted) as is_adjusted,
    count(*) as num_sources,
    any_value(l.cutoff) + interval 1 month as stated_end,
    any_value(c.estimated_cutoff_low) filter (c.estimated_cutoff is not null) as measured_begin,
    any_value(c.estimated_cutoff_high) filter (c.estimated_cutoff is not null)
    + interval 1 month as measured_end,
    coalesce(l.month > any_value(l.cutoff), false) as is_after,
    row_number() over (partition by l.model order by l.month) = 1 as is_first
from levelled as l
left join estimated_cutoff as c
    on l.model = c.model and c.scope = 'all' and c.protocol = $protocol
group by l.model, l.month
order by stated_end nulls last, l.model, l.month
