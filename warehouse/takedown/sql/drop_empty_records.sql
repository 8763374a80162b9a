-- Delete records of one partition's cells that have no losses left.
-- Python replaces recorded_cells by the name of each table with records of cells.
delete from recorded_cells as recorded
where
    recorded.source = $source
    and recorded.month is not distinct from cast($month as date)
    and not exists (
        select 1
        from chunk_losses as losses
        where
            losses.model = recorded.model
            and losses.source = recorded.source
            and losses.month is not distinct from recorded.month
            and losses.protocol = recorded.protocol
    );
