-- Forget what is recorded of cells of one partition that have no losses any more.
delete from cell_costs as recorded
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
