-- Compression figures of a model on a source, by month.
-- Grain: one row per model, source, protocol, month. Undated text is left out.
-- Units: as the names say; compression_rate is a fraction (compressed size / raw size).
-- Unmeasured chunks are counted, but neither their losses nor their text enter the ratios.
-- If one of them is non_finite, sums and ratios are NULL. The model failed on text that it should
--   have measured, so the rest is not a figure of the month.
-- bits_per_byte_low and _high bound a 95 % interval: would other documents of this month say the
--   same? Student's t over clusters of documents; NULL if all documents are in one cluster. A
--   single month has no interval over time.
-- Published rates are rows of protocol `published`, without sums or counts.
-- is_text: images and recordings have no characters. Never average text with images or recordings.
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
    is_text,
    reason
from internal.monthly_loss_details;
