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
-- Source: docs/metrics.md (Likelihood, Intervals).
-- Further columns: internal.monthly_loss_details.
create or replace view monthly_loss as
select
    model,
    source,
    protocol,
    month,
    bits_per_byte,
    bits_per_byte_low,
    bits_per_byte_high,
    num_documents,
    num_unmeasured,
    nll_nats,
    num_tokens,
    num_chars,
    num_bytes,
    bits_per_char,
    compression_rate,
    is_text
from internal.monthly_loss_details;
