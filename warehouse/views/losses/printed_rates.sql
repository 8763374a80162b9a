-- Compression rates by month as publications print them.
-- Grain: one row per model, source, month. monthly_loss has those of text as bits per byte, under
--   protocol published.
-- Units: compression_rate is a fraction: compressed size / raw size. num_bytes is the raw size or
--   NULL if it is not published.
-- Source: `tidemark land rates`; reference names the publication.
create or replace view printed_rates as
select
    model,
    source,
    'published' as protocol,
    month,
    compression_rate,
    num_bytes,
    is_text,
    reference
from internal.published_rates;
