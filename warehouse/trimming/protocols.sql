-- Drop the protocols of which the release has neither a cell nor, of `published`, a rate.
delete from protocols
where
    protocol not in (
        select protocol
        from landed_cells
        where coalesce(month <= cast($last as date), true)
    )
    and not (
        protocol = 'published'
        and exists (
            select 1
            from published_rates
            where month <= cast($last as date)
        )
    );
