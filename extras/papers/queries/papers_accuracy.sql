-- Adjusted score of forecasts by month of opening, and its centred mean over three months.
-- smoothed: mean over the month and its two neighbours [score]
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
