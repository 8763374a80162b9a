-- What a model's losses on a source come to, month by month.
-- Grain: one row per model, source, protocol, month. Undated text is left out.
-- Units: as the names say; compression_rate is a fraction (compressed size / raw size).
-- Unmeasured chunks are counted, but neither their losses nor their text enter the ratios.
-- Where one is non_finite, sums and ratios are NULL: the model broke on text that it should have
--   measured, and what is left is not a figure of the month.
-- bits_per_byte_low and _high bound a 95 % interval: Student's t over clusters of documents, NULL
--   where the month is of a single cluster.
-- Rates that others have published are rows of protocol `published`, without sums or counts.
-- is_text: images and recordings have no characters; a mean over sources of both means nothing.
-- Source: metrics.md, sections 1 (ratio of sums over the month's documents) and 5.
-- Reads sound_cells, published_rates.
create or replace view monthly_loss as
select
    model,
    source,
    protocol,
    month,
    num_documents,
    num_chunks,
    num_unmeasured,
    nll_nats,
    num_tokens,
    num_chars,
    num_bytes,
    nll_nats / (ln(2) * nullif(num_bytes, 0)) as bits_per_byte,
    nll_nats / (ln(2) * nullif(num_chars, 0)) as bits_per_char,
    nll_nats / (ln(2) * nullif(num_tokens, 0)) as bits_per_token,
    nll_nats / nullif(num_chars, 0) as nats_per_char,
    nll_nats / (8 * ln(2) * nullif(num_bytes, 0)) as compression_rate,
    num_chars > 0 as is_text,
    case
        when standard_error is not null
            then
                greatest(
                    0,
                    nll_nats / (ln(2) * num_bytes)
                    - t_975(degrees_of_freedom) * standard_error
                )
    end as bits_per_byte_low,
    nll_nats / (ln(2) * nullif(num_bytes, 0)) + t_975(degrees_of_freedom) * standard_error
        as bits_per_byte_high,
    standard_error,
    degrees_of_freedom,
    num_clusters,
    false as is_published
from sound_cells
where month is not null
union all
select
    model,
    source,
    'published' as protocol,
    month,
    null as num_documents,
    null as num_chunks,
    null as num_unmeasured,
    null as nll_nats,
    null as num_tokens,
    null as num_chars,
    null as num_bytes,
    8 * compression_rate as bits_per_byte,
    null as bits_per_char,
    null as bits_per_token,
    null as nats_per_char,
    compression_rate,
    is_text,
    null as bits_per_byte_low,
    null as bits_per_byte_high,
    null as standard_error,
    null as degrees_of_freedom,
    null as num_clusters,
    true as is_published
from published_rates;
