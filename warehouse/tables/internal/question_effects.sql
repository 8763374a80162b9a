-- Difficulty of forecasting questions: the score that a model of mean effect would have.
-- Grain: one row per source, measure, question_id. Empty in the writer's own database.
-- Units: of the measure: accuracy, 0 to 1; brier_score, 0 to 2.
-- Source: warehouse/estimates/questions.py, which has the formulas.
create table if not exists internal.question_effects (
    source varchar not null,
    measure varchar not null, -- accuracy or brier_score
    question_id varchar not null,
    difficulty double not null, -- may be outside of the measure's limits
    difficulty_error double, -- standard error, for other models; NULL with fewer than 3 answers
    degrees_of_freedom double not null,
    num_answers bigint not null
);
