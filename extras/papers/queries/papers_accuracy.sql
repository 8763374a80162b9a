-- Adjusted score of forecasts by month of opening, and its centred mean over three months.
-- smoothed: mean over the month and its two neighbours [score]
-- model: model, as in view models
-- source: source of the questions
-- protocol: how the model was asked
-- month: first day of the month in which questions were opened [date]
-- adjusted_score: as in forecast_accuracy_monthly [0 to 1]
select
    model,
    source,
    protocol,
    month,
    value as adjusted_score,
    smoothed
from papers.smoothed_curves_at(3)
where figure = 'adjusted_score'
order by source, model, protocol, month
