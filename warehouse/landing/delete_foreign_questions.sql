-- Forget what the changed questions take the place of.
delete from forecast_questions as landed
using changed_foreign_questions as changed
where landed.source = changed.source and landed.question_id = changed.question_id;
