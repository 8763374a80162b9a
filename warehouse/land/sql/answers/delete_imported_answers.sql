-- Delete the landed answers that the changed answers replace.
delete from forecast_answers as landed
using changed_imported_answers as changed
where
    landed.model = changed.model
    and landed.source = changed.source
    and landed.question_id = changed.question_id
    and landed.protocol = changed.protocol;
