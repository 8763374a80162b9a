-- Scores of models on questions from after their cutoffs, adjusted for the questions' difficulty.
-- Grain: one row per source, min_days_before_close, measure, model, protocol; source NULL: of the
--   questions of all sources. Empty in the writer's own database.
-- Units: of the measure: accuracy, 0 to 1; brier_score, 0 to 2.
-- Source: warehouse/estimates/questions.py, which has the formulas.
create table if not exists internal.forecast_effects (
    source varchar,
    min_days_before_close integer not null, -- least days from the model's last knowledge to closing
    measure varchar not null, -- accuracy or brier_score
    model varchar not null,
    protocol varchar not null,
    score double, -- expected on all questions; NULL if no question connects the model to another
    score_error double, -- standard error, for other days like these
    degrees_of_freedom double,
    guess double, -- of a guesser on all questions
    own_score double not null, -- mean over the model's own answers
    num_answers bigint not null,
    num_shared bigint not null, -- answers to questions that another model answered, too
    num_days bigint not null, -- days of resolution with an answer of the model
    num_models bigint not null, -- that questions connect, each under each protocol
    num_questions bigint not null, -- that these models answered
    reason varchar -- why there is no score, or no error
);
