-- Delete answers to questions that were resolved after the release's month.
delete from forecast_answers
where
    (source, question_id) in (
        select (source, question_id)
        from forecast_questions
        where month > cast($last as date)
    );
