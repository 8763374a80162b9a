-- Delete questions with texts of the documents of a takedown.
-- Input: questions_to_forget, Arrow data with source and question_id.
delete from forecast_questions
where (source, question_id) in (select (source, question_id) from questions_to_forget);
