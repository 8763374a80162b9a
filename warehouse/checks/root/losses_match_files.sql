-- Cells whose landed losses differ from their file in the data root.
-- Do: If `tidemark land losses` has added rows to these cells on purpose, keep the landed files;
--   else run `tidemark rebuild`: it makes the database again from the files.
-- Input: scored_cells (number, model, source, month, protocol), and losses_of_files (number and
-- the columns of LOSSES), each as Arrow data.
with landed as (
    select
        scored.number,
        count(*) as num_chunks,
        sum(losses.nll_nats) as nll_nats,
        bit_xor(hash(
            losses.document_id, losses.chunk_index, losses.nll_nats, losses.num_tokens,
            losses.num_chars, losses.num_bytes, losses.reason
        )) as fingerprint
    from chunk_losses as losses
    inner join scored_cells as scored
        on
            losses.model = scored.model
            and losses.source = scored.source
            and losses.month is not distinct from scored.month
            and losses.protocol = scored.protocol
    group by scored.number
),

-- As in read_given in land/losses.sql: NaN and NULL both mean that a chunk was not measured.
rows_of_files as (
    select
        * replace (
            case when not isnan(nll_nats) then nll_nats end as nll_nats,
            case when nll_nats is null or isnan(nll_nats) then reason end as reason
        )
    from losses_of_files
),

files as (
    select
        number,
        count(*) as num_chunks,
        sum(nll_nats) as nll_nats,
        bit_xor(hash(
            document_id, chunk_index, nll_nats, num_tokens, num_chars, num_bytes, reason
        )) as fingerprint
    from rows_of_files
    group by number
)

select
    scored.model,
    scored.source,
    scored.month,
    scored.protocol,
    landed.num_chunks as num_chunks_landed,
    files.num_chunks as num_chunks_of_file,
    landed.nll_nats as nll_nats_landed,
    files.nll_nats as nll_nats_of_file
from files
inner join scored_cells as scored on files.number = scored.number
left join landed on files.number = landed.number
where
    files.num_chunks is distinct from landed.num_chunks
    or files.fingerprint is distinct from landed.fingerprint
order by scored.number;
