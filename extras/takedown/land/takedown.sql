-- Takedown of documents: their rows go, and the sums of their partitions are computed again.
-- In: documents_to_forget and questions_to_forget, Arrow data.
-- Out: no table has a row of them; internal.forgotten_documents names the documents.

-- name: list_partitions_to_forget
-- The partitions with rows of the documents of a takedown.
-- Input: documents_to_forget.
select
    source,
    month
from documents
where document_id in (select document_id from documents_to_forget)
union
select
    source,
    month
from chunk_losses
where document_id in (select document_id from documents_to_forget)
order by source, month;

-- name: find_forgotten_duplicate
-- A duplicate pair of a former database with a document of a takedown.
-- Input: documents_to_forget; duplicates_to_search, the table duplicate_of.
select document_id
from duplicates_to_search
where
    document_id in (select document_id from documents_to_forget)
    or duplicate_of_document_id in (select document_id from documents_to_forget)
order by document_id
limit 1;

-- name: delete_forgotten_losses
-- Delete the losses of the documents of a takedown.
delete from chunk_losses
where document_id in (select document_id from documents_to_forget);

-- name: delete_forgotten_documents
-- Delete the documents of a takedown.
delete from documents
where document_id in (select document_id from documents_to_forget);

-- name: delete_forgotten_answers
-- Delete the answers to questions with texts of the documents of a takedown.
-- Input: questions_to_forget, Arrow data with source and question_id.
delete from forecast_answers
where (source, question_id) in (select (source, question_id) from questions_to_forget);

-- name: delete_forgotten_questions
-- Delete questions with texts of the documents of a takedown.
-- Input: questions_to_forget, Arrow data with source and question_id.
delete from forecast_questions
where (source, question_id) in (select (source, question_id) from questions_to_forget);

-- name: insert_forgotten_documents
-- Record documents of a takedown; skip documents that are recorded already.
-- Input: documents_to_forget, Arrow data with the columns of the table.
insert into internal.forgotten_documents by name
select given.*
from documents_to_forget as given
anti join internal.forgotten_documents as recorded on given.document_id = recorded.document_id;

-- name: recount_partition
-- Recount the documents of one partition.
update internal.landed_partitions
set
    num_documents = counts.num_documents,
    num_bytes = counts.num_bytes
from (
    select
        count(*) as num_documents,
        cast(coalesce(sum(num_bytes), 0) as bigint) as num_bytes
    from documents
    where source = $source and month is not distinct from cast($month as date)
) as counts
where source = $source and month is not distinct from cast($month as date);

-- name: drop_empty_records
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
