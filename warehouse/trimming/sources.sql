-- Drop the sources of which the release has no cell.
delete from sources
where source not in (
    select source
    from landed_cells
    where coalesce(month <= cast($last as date), true)
);
