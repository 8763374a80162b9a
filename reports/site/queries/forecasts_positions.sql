-- The places of the shown list of options that models prefer.
-- first_bias: probability of the first option less 1 / options [share]
-- first_bias_low: lower end of the 95 % interval of first_bias [share]
-- first_bias_high: upper end of the 95 % interval of first_bias [share]
-- favoured_place: place with the largest excess, from 1 [place]
-- favoured_bias: its excess over 1 / options [share]
-- p_value: of no preferred place; over all places [probability]
-- p_reason: why there is no p-value
-- rotated: yes if each option was equally often in each place
with places as (
    select
        *,
        difference_p_value(
            bias,
            -- The half width is t_975 standard errors; Wilson's, of written answers, 1.96.
            (bias_high - bias_low) / 2
            / case
                when starts_with(protocol, 'generate') then 1.96 else t_975(num_answers - 1)
            end,
            num_answers - 1
        ) as p_value
    from forecast_position_bias
)

select
    model,
    source,
    protocol,
    max(bias) filter (where place = 1) as first_bias,
    max(bias_low) filter (where place = 1) as first_bias_low,
    max(bias_high) filter (where place = 1) as first_bias_high,
    arg_max(place, bias) as favoured_place,
    max(bias) as favoured_bias,
    -- Bonferroni's correction over the places; with fewer answers, skewed probabilities make a
    -- small p-value of Student's t too often. least() would make 1 of NULL.
    case
        when max(num_answers) >= minimum('answers of a place')
            then
                least(
                    1,
                    count(*)
                    * min(p_value) filter (where num_answers >= minimum('answers of a place'))
                )
    end as p_value,
    case
        when max(num_answers) < minimum('answers of a place')
            then too_few(max(num_answers), 'answer', '', 'answers of a place')
    end as p_reason,
    max(num_answers) as num_answers,
    case when bool_and(is_balanced) then 'yes' else 'no' end as rotated
from places
group by model, source, protocol
order by source asc, abs(first_bias) desc, model asc, protocol asc
