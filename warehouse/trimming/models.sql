-- Drop the models of which the release has neither a cell, nor a published rate, nor an answer
-- (those of later months are gone by now), nor answers to puzzles, which are of no month.
delete from models
where
    model not in (
        select model
        from landed_cells
        where coalesce(month <= cast($last as date), true)
    )
    and model not in (
        select model
        from published_rates
        where month <= cast($last as date)
    )
    and model not in (
        select model
        from forecast_answers
    )
    and model not in (
        select model
        from scylla_cells
    );
