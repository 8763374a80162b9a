-- The first staged row that is not of the cell that it came with.
select
    model,
    revision,
    source,
    month,
    protocol,
    document_id,
    chunk_index
from incoming
where
    model <> $model
    or revision <> $revision
    or source <> $source
    or month is distinct from cast($month as date)
    or protocol <> $protocol
order by document_id, chunk_index
limit 1;
