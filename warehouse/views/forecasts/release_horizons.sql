-- Accuracy before a model's release and in the quarters after it.
-- Grain: one row per model, source, protocol, horizon; models of known release.
-- Units: horizon 0 is the six months before release; 3, 6, 9 and 12: the three months that end so
--   many months after release. variance is of the accuracy with two right and two wrong answers
--   added (Agresti and Coull), so that it is positive even if all answers are right.
--   adjusted_score: mean over the calendar months of the horizon of equation 3's score.
-- Source: Zhu et al. 2024, Table 9.
create or replace view internal.release_horizons as
with placed as (
    select
        model,
        source,
        protocol,
        released,
        is_correct,
        expected,
        opened,
        case
            when opened < released
                then case when opened >= cast(released - interval 6 month as date) then 0 end
            when opened < cast(released + interval 3 month as date) then 3
            when opened < cast(released + interval 6 month as date) then 6
            when opened < cast(released + interval 9 month as date) then 9
            when opened < cast(released + interval 12 month as date) then 12
        end as horizon
    from internal.judged_answers
    where released is not null
),

months as (
    select
        model,
        source,
        protocol,
        any_value(released) as released,
        horizon,
        count(*) as num_questions,
        count(*) filter (where is_correct) as num_correct,
        sum(expected) as sum_expected,
        adjusted_score(
            avg(cast(is_correct as integer)), avg(expected), avg(expected), count(*)
        ) as adjusted_score
    from placed
    where horizon is not null
    group by model, source, protocol, horizon, date_trunc('month', opened)
),

totals as (
    select
        model,
        source,
        protocol,
        horizon,
        any_value(released) as released,
        cast(sum(num_questions) as bigint) as num_questions,
        cast(sum(num_correct) as bigint) as num_correct,
        sum(sum_expected) as sum_expected,
        avg(adjusted_score) as adjusted_score
    from months
    group by model, source, protocol, horizon
)

select
    model,
    source,
    protocol,
    released,
    horizon,
    num_questions,
    num_correct / num_questions as accuracy,
    sum_expected / num_questions as expected_accuracy,
    (num_correct + 2)
    / (num_questions + 4)
    * (num_questions - num_correct + 2)
    / (num_questions + 4)
    / num_questions as variance,
    adjusted_score
from totals;
