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

scored as (
    select
        *,
        count(*) over of_month as num_in_month,
        adjusted_score(
            avg(cast(is_correct as integer)) over of_month,
            avg(expected) over of_month,
            avg(expected) over of_month,
            num_in_month
        ) as score
    from placed
    where horizon is not null
    window of_month as (
        partition by model, source, protocol, horizon, date_trunc('month', opened)
    )
)

select
    model,
    source,
    protocol,
    any_value(released) as released,
    horizon,
    count(*) as num_questions,
    avg(cast(is_correct as integer)) as accuracy,
    avg(expected) as expected_accuracy,
    (count(*) filter (where is_correct) + 2)
    / (count(*) + 4)
    * (count(*) filter (where not is_correct) + 2)
    / (count(*) + 4)
    / count(*) as variance,
    sum(score / num_in_month) / count(distinct date_trunc('month', opened)) as adjusted_score
from scored
group by model, source, protocol, horizon;
