-- Size of the models' tokenizers, text per token, and lossy documents.
-- Grain: one row per model, revision. Compressors have no tokenizer.
-- Units: tokens_per_byte and bytes_per_token are of UTF-8 text, over the measured chunks of the
--   default protocol (every token is scored once, in order). Images and audio are left out: their
--   cells have no characters. NULL if nothing was scored under the default protocol.
-- A document is lossy if it cannot be restored from its tokens. is_lossy (flag lossy_tokenizer;
--   headline leaves such models out): more than one in a thousand documents are lossy. So one
--   exotic character does not exclude a model, but a normaliser of ordinary text does. Only cells
--   with a cost record count; NULL without such cells.
-- Source: Li et al. 2024, arXiv 2402.00861.
create or replace view tokenizer_comparison as
with sums as (
    select
        cells.model,
        cells.revision,
        cast(sum(cells.num_tokens) as bigint) as num_tokens,
        cast(sum(cells.num_bytes) as bigint) as num_bytes,
        cast(sum(cells.num_documents) filter (where c.model is not null) as bigint)
            as num_documents,
        cast(sum(c.num_lossy_documents) as bigint) as num_lossy_documents
    from internal.landed_cells as cells
    left join cell_costs as c
        on
            cells.model = c.model
            and cells.source = c.source
            and cells.month is not distinct from c.month
            and cells.protocol = c.protocol
    where cells.protocol = 'default' and cells.num_chars > 0
    group by cells.model, cells.revision
)

select
    t.model,
    t.revision,
    t.vocabulary_size,
    t.start_token,
    t.has_byte_tokens,
    sums.num_tokens / nullif(sums.num_bytes, 0) as tokens_per_byte,
    sums.num_bytes / nullif(sums.num_tokens, 0) as bytes_per_token,
    sums.num_documents,
    sums.num_lossy_documents,
    sums.num_lossy_documents * 1000 > sums.num_documents as is_lossy
from tokenizers as t
left join sums on t.model = sums.model and t.revision = sums.revision;
