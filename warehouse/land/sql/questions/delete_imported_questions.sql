-- Delete the landed questions that the changed questions replace.
delete from forecast_questions as landed
using changed_imported_questions as changed
where landed.source = changed.source and landed.question_id = changed.question_id;
