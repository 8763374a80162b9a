-- Whether an answer fits its question as it is known now.
-- What a crawl tells of a question takes the place of what files told.
-- Parameters: a row's columns of forecast_answers, then of its forecast_questions. What is not
--   known fits. reason another_question: its file told other options, or another outcome.
create or replace macro answer_fits(
    chosen_index, is_correct, probabilities, reason, num_options, answer_index
) as
    coalesce(len(probabilities) = num_options, true)
    and coalesce(chosen_index < num_options, true)
    and coalesce((chosen_index = answer_index) = is_correct, true)
    and coalesce(reason <> 'another_question', true);
