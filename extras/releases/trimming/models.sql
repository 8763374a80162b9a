-- Delete models without a cell, a published rate, an answer or a puzzle answer in the release.
-- Answers to later questions are deleted before; puzzle answers have no month.
delete from models
where
    model not in (
        select model
        from internal.landed_cells
        where coalesce(month <= cast($last as date), true)
    )
    and model not in (
        select model
        from internal.published_rates
        where month <= cast($last as date)
    )
    and model not in (
        select model
        from forecast_answers
    )
    and model not in (
        select model
        from internal.scylla_cells
    )
    and model not in (
        select model
        from internal.scylla_likelihoods
    );
