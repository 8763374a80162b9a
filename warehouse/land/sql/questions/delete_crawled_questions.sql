-- Delete the questions that a crawled month replaces: the same questions from imported files or
-- earlier months, and the month's former questions. Questions with remaining answers stay.
-- Input: questions_to_land. Parameters: source, month.
delete from forecast_questions
where
    source = $source
    and (
        (
            question_id in (select question_id from questions_to_land)
            and (title is null or month <= cast($month as date))
        )
        or (
            month = cast($month as date)
            and title is not null
            and question_id not in (
                select question_id
                from forecast_answers
                where source = $source
            )
        )
    );
