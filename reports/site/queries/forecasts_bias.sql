-- Whether recent questions are answered worse than earlier ones: a test, and the paper's rule.
-- tested_class: class by the test
-- paper_class: class by the paper's rule
-- bias_reason: why there is no p-value, no slope, or no interval of it
with tested as (
    select
        model,
        source,
        protocol,
        arg_min(bias_class, p_adjusted) as tested_class,
        min(p_adjusted) as p_adjusted
    from forecast_bias_test
    group by all
)

select
    t.model,
    t.source,
    t.protocol,
    b.tested_class,
    case when b.tested_class <> 'No answers' then b.p_adjusted end as p_adjusted,
    t.tbi_x1000,
    t.tbi_x1000_low,
    t.tbi_x1000_high,
    t.bias_class as paper_class,
    case
        when t.reason is not null then t.reason
        when p_adjusted is null then 'no test: no answers, or none from before the release'
    end as bias_reason
from forecast_tbi as t
left join tested as b on t.model = b.model and t.source = b.source and t.protocol = b.protocol
order by t.source, t.model, t.protocol
