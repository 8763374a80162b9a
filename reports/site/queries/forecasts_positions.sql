-- The places of the shown list of options that models prefer.
select
    model,
    source,
    protocol,
    max(bias) filter (where place = 1) as first_bias,
    max(bias_low) filter (where place = 1) as first_bias_low,
    max(bias_high) filter (where place = 1) as first_bias_high,
    arg_max(place, bias) as favoured_place,
    max(bias) as favoured_bias,
    max(num_answers) as num_answers,
    case when bool_and(is_balanced) then 'yes' else 'no' end as rotated
from forecast_position_bias
group by model, source, protocol
order by source asc, abs(first_bias) desc, model asc, protocol asc
