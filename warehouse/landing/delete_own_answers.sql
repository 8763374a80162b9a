-- Forget what a cell of answers takes the place of: its month's, and those to questions that have
-- been resolved anew since. Input: answers_to_land. Parameters: model, source, protocol, month.
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
