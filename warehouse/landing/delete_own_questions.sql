-- Forget what a month of questions takes the place of: what was known of them by foreign files, or
-- from earlier months, and its own former questions. Those of answers that stay stay, too.
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
