-- Drop the models of which the release has neither a cell nor a published rate.
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
    );
