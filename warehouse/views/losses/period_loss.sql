-- Compression figures of a model on a source, by the source's period: month, half-month or week.
-- Grain: one row per model, source, protocol, month. Undated text is left out.
-- month is the first day of the period. A source of half-months or weeks (govuk:half-month) has
--   texts of a source of months again. So monthly_loss and all views that compare sources have the
--   sources of months only.
-- Units, intervals and NULLs: as in monthly_loss.
-- Source: docs/metrics.md (Likelihood, Intervals); docs/adr/0041-periods.md.
-- Further columns: internal.period_loss_details.
create or replace view period_loss as
select
    model,
    source,
    protocol,
    period,
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
    is_text,
    reason
from internal.period_loss_details;
