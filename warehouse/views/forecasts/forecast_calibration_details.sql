-- Every column of forecast_calibration. Units and NULLs: see that view.
-- Grain: one row per model, source, protocol; models that give probabilities.
create or replace view internal.forecast_calibration_details as
with counted as (
    select
        *,
        count(*) filter (where p_correct is null) over (partition by model, source, protocol)
            as num_unknown
    from internal.judged_answers
    where p_correct is not null or p_chosen is not null
),

complete as (
    select
        * replace (case when num_unknown = 0 then brier end as brier),
        case when num_unknown = 0 then -ln(greatest(p_correct, 0.0001)) end as loss
    from counted
),

scored as (
    select
        model,
        source,
        protocol,
        num_unknown,
        count(*) as num_answers,
        count(*) filter (where p_correct < 0.0001) as num_ruled_out,
        count(brier) as num_brier,
        avg(brier) as brier_score,
        t_975(greatest(1, count(brier) - 1)) * stddev_samp(brier) / sqrt(count(brier))
            as brier_half,
        avg(loss) as log_score,
        t_975(greatest(1, count(loss) - 1)) * stddev_samp(loss) / sqrt(count(loss)) as log_half,
        count(brier + crowd_brier) as num_crowd,
        avg(crowd_brier) filter (where brier is not null) as crowd_brier_score,
        avg(brier) filter (where crowd_brier is not null) as model_brier_score_there
    from complete
    group by model, source, protocol, num_unknown
),

binned as (
    select
        model,
        source,
        protocol,
        cast(sum(num_answers) as bigint) as num_binned,
        sum(num_answers * abs(mean_probability - accuracy)) / sum(num_answers) as calibration_error,
        list(
            {
                'bin': bin,
                'num_answers': num_answers,
                'mean_probability': mean_probability,
                'accuracy': accuracy
            }
            order by bin
        ) as bins
    from internal.forecast_reliability
    group by model, source, protocol
)

select
    s.model,
    s.source,
    s.protocol,
    s.num_answers,
    s.num_unknown,
    s.num_brier,
    s.brier_score,
    -- greatest() and least() would ignore the NULL of an unknown interval.
    case when s.brier_half > s.brier_score then 0 else s.brier_score - s.brier_half end
        as brier_score_low,
    case when s.brier_score + s.brier_half > 2 then 2 else s.brier_score + s.brier_half end
        as brier_score_high,
    s.log_score,
    case when s.log_half > s.log_score then 0 else s.log_score - s.log_half end as log_score_low,
    s.log_score + s.log_half as log_score_high,
    s.num_ruled_out,
    coalesce(b.num_binned, 0) as num_binned,
    b.calibration_error,
    b.bins,
    s.num_crowd,
    s.crowd_brier_score,
    s.model_brier_score_there,
    case
        when s.num_unknown > 0
            then
                'the probability of the outcome is unknown for ' || s.num_unknown || ' of '
                || s.num_answers || ' answers'
        else lacking_number(s.num_brier, 'answer', '', 'answers of a mean')
    end as reason
from scored as s
left join binned as b
    on
        s.model = b.model
        and s.source = b.source
        and s.protocol = b.protocol
        and s.num_unknown = 0;
