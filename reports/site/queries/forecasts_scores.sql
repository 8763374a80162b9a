-- Brier scores of models, and of the crowd where it forecast.
-- crowd_reason: why there is no score of the crowd
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
    num_answers,
    case when num_crowd = 0 then 'no crowd forecast these questions' end as crowd_reason
from forecast_calibration
where brier_score is not null
order by source, brier_score, model, protocol
