-- Whether recent questions are answered worse than earlier ones, by a test of each comparison.
-- tested_class: class by the comparison of the smallest p
-- bias_reason: why there is no p-value
with tested as (
    select
        model,
        source,
        protocol,
        arg_min(bias_class, p_adjusted) as tested_class,
        min(p_adjusted) as least_p
    from forecast_bias_test
    group by all
)

select
    model,
    source,
    protocol,
    tested_class,
    case when tested_class <> 'No answers' then least_p end as p_adjusted,
    case when tested_class = 'No answers' then 'no text of the model has an answer' end
        as bias_reason
from tested
order by source, model, protocol
