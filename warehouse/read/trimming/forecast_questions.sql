-- Delete questions that were resolved after the release's month.
delete from forecast_questions
where month > cast($last as date);
