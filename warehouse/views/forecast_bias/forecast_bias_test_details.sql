-- Every column of forecast_bias_test. Units and NULLs: see that view.
-- Grain: one row per model, source, protocol, comparison; questions opened before release.
create or replace view internal.forecast_bias_test_details as
with tested as (
    select
        *,
        num_earlier_correct / num_earlier as accuracy_earlier,
        num_recent_correct / num_recent as accuracy_recent,
        (num_earlier_correct + 1) / (num_earlier + 2) as middle_earlier,
        (num_recent_correct + 1) / (num_recent + 2) as middle_recent,
        coalesce(2 * normal_tail(abs(z_proportions)), 1) as p_proportions,
        coalesce(2 * normal_tail(abs(z_ranks)), 1) as p_ranks,
        case
            when leeway >= minimum('right answers of a test') and z_proportions * z_ranks > 0
                then greatest(p_proportions, p_ranks)
            else 1
        end as p_value,
        1.959963984540054e0
        * sqrt(
            middle_earlier * (1 - middle_earlier) / (num_earlier + 2)
            + middle_recent * (1 - middle_recent) / (num_recent + 2)
        ) as error
    from internal.bias_statistics
),

silent as (
    select
        model,
        source,
        protocol
    from internal.judged_answers
    where is_before_release
    group by model, source, protocol
    having not bool_or(is_parsed)
),

stepped as (
    select
        *,
        p_value
        * (count(*) over family - row_number() over (family order by p_value, comparison) + 1)
            as step
    from tested
    window family as (partition by model, source, protocol)
),

adjusted as (
    select
        *,
        least(
            1,
            max(step) over (
                partition by model, source, protocol
                order by p_value, comparison
                rows between unbounded preceding and current row
            )
        ) as p_adjusted
    from stepped
)

select
    a.model,
    a.source,
    a.protocol,
    comparison,
    earlier_from,
    earlier_to,
    recent_from,
    recent_to,
    num_earlier,
    num_recent,
    accuracy_earlier,
    accuracy_recent,
    accuracy_recent - accuracy_earlier as difference,
    greatest(-1, middle_recent - middle_earlier - error) as difference_low,
    least(1, middle_recent - middle_earlier + error) as difference_high,
    p_proportions,
    p_ranks,
    p_value,
    p_adjusted,
    case
        when s.model is not null then 'No answers'
        when p_adjusted > 0.05 then 'Balanced'
        when z_proportions < 0 then 'Nostalgia'
        else 'Neophilia'
    end as bias_class,
    case
        when p_adjusted <= 0.001 then '***'
        when p_adjusted <= 0.01 then '**'
        when p_adjusted <= 0.05 then '*'
        else ''
    end as significance,
    case
        when s.model is not null then 'no text of the model has an answer'
        when z_proportions is null or z_ranks is null then 'no test: nothing varies'
        when leeway < minimum('right answers of a test')
            then
                'no test: '
                || too_few(
                    floor(10 * leeway) / 10, 'right answer',
                    ' from the expected number to the end of its range', 'right answers of a test'
                )
        when z_proportions * z_ranks <= 0 then 'no test: its two statistics have other directions'
    end as reason
from adjusted as a
left join silent as s on a.model = s.model and a.source = s.source and a.protocol = s.protocol;
