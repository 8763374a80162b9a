-- Delete sources without a cell or a published rate in the release.
delete from sources
where
    source not in (
        select source
        from internal.landed_cells
        where coalesce(month <= cast($last as date), true)
    )
    and source not in (
        select source
        from internal.published_rates
        where month <= cast($last as date)
    );
