-- Drop the protocols of which the release has no cell.
delete from protocols
where protocol not in (
    select protocol
    from landed_cells
    where coalesce(month <= cast($last as date), true)
);
