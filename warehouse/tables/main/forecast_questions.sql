-- Forecasting questions, with their outcomes.
-- Grain: one row per source, question_id.
-- Source: `tidemark forecast`, and `tidemark land-answers`, whose files name no title.
create table if not exists forecast_questions (
    source varchar not null,
    question_id varchar not null, -- unique within the source
    month date not null, -- first day of the month of resolution; foreign: else of closing, opening
    title varchar,
    url varchar,
    opened date not null, -- UTC, as the others
    closed date,
    resolved date,
    num_options integer not null,
    answer_index integer, -- from 0; NULL: void, or not known
    status varchar not null, -- resolved or void
    tags varchar[],
    crowd_probabilities double[], -- one an option, never shown to a model
    licence varchar
);
