-- Models' answers to forecasting questions: tidemark's runs and imported answers.
-- Grain: one row per model, source, question_id, protocol.
-- Source: `tidemark forecast answer`, and `tidemark land answers` (revision is NULL if imported).
create table if not exists forecast_answers (
    model varchar not null,
    revision varchar,
    source varchar not null,
    question_id varchar not null,
    protocol varchar not null,
    released date,
    probabilities double[],
    p_correct double,
    p_chosen double,
    chosen_index integer,
    is_parsed boolean not null,
    is_correct boolean,
    reason varchar,
    answer_cell varchar
);
alter table forecast_answers add column if not exists place_probabilities double[];
