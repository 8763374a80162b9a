-- Delete the answers that a cell replaces: answers of its month, and answers to questions that were
-- resolved again since. Input: answers_to_land. Parameters: model, source, protocol, month.
delete from forecast_answers
where
    model = $model
    and source = $source
    and protocol = $protocol
    and question_id in (
        select question_id
        from forecast_questions
        where
            source = $source
            and (
                month = cast($month as date)
                or (
                    month < cast($month as date)
                    and question_id in (select question_id from answers_to_land)
                )
            )
    );
