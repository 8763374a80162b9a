-- Models' answers to forecasting questions: tidemark's runs and imported answers.
-- Grain: one row per model, source, question_id, protocol.
-- Source: `tidemark forecast answer`, and `tidemark land-answers` (revision is NULL then).
create table if not exists forecast_answers (
    model varchar not null,
    revision varchar,
    source varchar not null,
    question_id varchar not null,
    protocol varchar not null,
    released date, -- of the model, as a foreign file says; else the catalogue's holds
    probabilities double[], -- one an option, of sum 1
    p_correct double, -- probability of the option that came true
    p_chosen double, -- probability of the option that was chosen
    chosen_index integer, -- from 0
    is_parsed boolean not null, -- whether a choice could be read off
    is_correct boolean, -- NULL: the question is void
    reason varchar, -- why there is no choice; another_question: see macro answer_fits
    answer_cell varchar -- path of the file of answers; NULL: of a foreign file
);
