-- Answers to forecasting questions with an outcome; tasks that were made from texts are left out.
-- Grain: one row per model, source, protocol, question_id.
-- Units: as in judged_answers_details.
-- Source: reads judged_answers_details.
create or replace view internal.judged_answers as
select
    model,
    source,
    protocol,
    question_id,
    opened,
    closed,
    released,
    cutoff,
    is_before_release,
    is_test,
    days_before_close,
    num_options,
    expected,
    is_parsed,
    is_correct,
    p_correct,
    p_chosen,
    brier,
    crowd_brier,
    tags
from internal.judged_answers_details
where not is_task;
