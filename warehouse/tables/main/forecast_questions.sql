-- Forecasting questions, with their outcomes.
-- Grain: one row per source, question_id.
-- Source: `tidemark forecast`, and `tidemark land answers` (imported files have no titles).
create table if not exists forecast_questions (
    source varchar not null,
    question_id varchar not null,
    month date not null,
    title varchar,
    url varchar,
    opened date not null,
    closed date,
    resolved date,
    num_options integer not null,
    answer_index integer,
    status varchar not null,
    tags varchar[],
    crowd_probabilities double[],
    licence varchar
);
