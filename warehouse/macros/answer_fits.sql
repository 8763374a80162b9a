-- True if an answer is consistent with the landed version of its question.
-- A crawled question replaces the question of an imported file.
-- Parameters: columns of a row of forecast_answers, then of its row of forecast_questions. A NULL
--   is consistent. Reason another_question: the file had other options or another outcome.
create or replace macro answer_fits(
    chosen_index, is_correct, probabilities, reason, num_options, answer_index
) as
    coalesce(len(probabilities) = num_options, true)
    and coalesce(chosen_index < num_options, true)
    and coalesce((chosen_index = answer_index) = is_correct, true)
    and coalesce(reason <> 'another_question', true);
