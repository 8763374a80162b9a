-- Share of right answers by the quarter in which questions were opened.
-- series: model, and source of the questions
-- day: first day of the quarter in which questions were opened [date]
-- is_test: True if the quarter's questions were opened after the cutoff
-- low: lower end of the 95 % interval of accuracy [share]
-- high: upper end of the 95 % interval of accuracy [share]
-- expected: share that guessing would get [share]
with quarters as (
    select
        model,
        source,
        protocol,
        date_trunc('quarter', month) as day,
        sum(num_correct) as num_correct,
        sum(num_questions) as num_questions,
        sum(num_questions * expected_accuracy) as expected,
        sum(num_test) as num_test
    from forecast_accuracy_monthly
    group by model, source, protocol, day
)

select
    model || ' · ' || source as series,
    model,
    source,
    protocol,
    day,
    num_correct / num_questions as accuracy,
    wilson_low(num_correct, num_questions) as low,
    wilson_high(num_correct, num_questions) as high,
    expected / num_questions as expected,
    2 * num_test >= num_questions as is_test,
    cast(num_questions as bigint) as num_questions
from quarters
where num_questions > 0
order by source, model, protocol, day
