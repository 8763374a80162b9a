-- Land the changed questions.
insert into forecast_questions by name
select * from changed_imported_questions;
