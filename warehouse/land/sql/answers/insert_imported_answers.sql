-- Land the changed answers.
insert into forecast_answers by name
select * from changed_imported_answers;
