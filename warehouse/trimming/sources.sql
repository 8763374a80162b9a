-- Drop the sources of which the release has neither a cell nor a published rate.
delete from sources
where
    source not in (
        select source
        from landed_cells
        where coalesce(month <= cast($last as date), true)
    )
    and source not in (
        select source
        from published_rates
        where month <= cast($last as date)
    );
