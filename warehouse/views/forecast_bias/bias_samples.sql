-- Answers that forecast_bias_test compares; in each comparison, an answer is in one of two samples.
-- Grain: one row per model, source, protocol, comparison, question_id; opened before release.
-- Units: in three comparisons, the recent questions were opened in the 20 months before release,
--   the earlier questions 40 to 20, 60 to 40 or 80 to 60 months before. The fourth compares newer
--   half with older half. Questions with equally many options are ranked by merit, with mean ranks
--   for ties. merit is the probability of the outcome. If it is unknown for any question in the
--   same ranking, merit is 1 (right) or 0 (wrong).
-- Source: the released analysis of Zhu et al. 2024 (its periods).
create or replace view internal.bias_samples as
with dated as (
    select
        model,
        source,
        protocol,
        question_id,
        num_options,
        opened,
        released,
        is_correct,
        p_correct as merit,
        -- Halves are divided by day: questions of one day are in the same half.
        quantile_disc(opened, 0.5) over (partition by model, source, protocol) as middle
    from internal.judged_answers
    where is_before_release
),

compared as (
    select
        *,
        case
            when opened >= cast(released - interval 20 month as date) then true
            when opened >= cast(released - interval 80 month as date) then false
        end as is_recent,
        case
            when opened >= cast(released - interval 40 month as date) then '40 to 20 months before'
            when opened >= cast(released - interval 60 month as date) then '60 to 40 months before'
            else '80 to 60 months before'
        end as period
    from dated
),

samples as (
    select
        compared.* exclude (period, middle),
        periods.comparison
    from compared
    inner join (
        values
        ('40 to 20 months before'), ('60 to 40 months before'), ('80 to 60 months before')
    ) as periods (comparison)
        on compared.is_recent or compared.period = periods.comparison
    where compared.is_recent is not null
    union all by name
    select
        compared.* exclude (period, middle) replace (opened > middle as is_recent),
        'older half' as comparison
    from compared
),

weighed as (
    select
        * replace (
            case
                when count(merit) over stratum = count(*) over stratum then merit
                else cast(is_correct as integer)
            end as merit
        )
    from samples
    window stratum as (partition by model, source, protocol, comparison, num_options)
)

select
    *,
    rank() over (stratum order by merit) + (count(*) over ties - 1) / 2 as rank
from weighed
window
    stratum as (partition by model, source, protocol, comparison, num_options),
    ties as (partition by model, source, protocol, comparison, num_options, merit);
