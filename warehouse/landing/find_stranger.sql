-- The first incoming cell that is not the one that the losses came with.
select
    model,
    revision,
    source,
    month,
    protocol
from incoming_cells
where
    model <> $model
    or revision <> $revision
    or source <> $source
    or month is distinct from cast($month as date)
    or protocol <> $protocol
order by cell
limit 1;
