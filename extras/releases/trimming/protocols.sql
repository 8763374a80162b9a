-- Delete protocols without a cell in the release; `published` also stays if it has a rate.
delete from protocols
where
    protocol not in (
        select protocol
        from internal.landed_cells
        where coalesce(month <= cast($last as date), true)
    )
    and not (
        protocol = 'published'
        and exists (
            select 1
            from internal.published_rates
            where month <= cast($last as date)
        )
    );
