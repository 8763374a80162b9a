-- Brier scores of models, and of the crowd where it forecast.
select
    model,
    source,
    protocol,
    brier_score,
    brier_score_low,
    brier_score_high,
    crowd_brier_score,
    model_brier_score_there,
    num_crowd,
    num_answers
from forecast_calibration
where brier_score is not null
order by source, brier_score, model, protocol
