-- The first document that is not of the cell that its losses came with.
select
    model,
    revision,
    source,
    month,
    protocol,
    document_id
from incoming_documents
where
    model <> $model
    or revision <> $revision
    or source <> $source
    or month is distinct from cast($month as date)
    or protocol <> $protocol
order by document_id
limit 1;
