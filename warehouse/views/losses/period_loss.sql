-- Compression figures of a model on a source, by the source's period: month, half-month or week.
-- Grain: one row per model, source, protocol, month. Undated text is left out.
-- month is the first day of the period. A source of half-months or weeks (govuk:half-month) has
--   texts of a source of months again. So monthly_loss and all views that compare sources have the
--   sources of months only.
-- Units, intervals and NULLs: as in monthly_loss.
-- Source: docs/metrics.md (Likelihood, Intervals); docs/adr/0041-periods.md.
create or replace view internal.period_loss as
select
    model,
    source,
    protocol,
    source_period(source) as period,
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
    false as is_published,
    cell_reason(is_finite, num_bytes, num_documents, standard_error) as reason
from internal.sound_cells
where month is not null
union all
select
    model,
    source,
    'published' as protocol,
    source_period(source) as period,
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
    true as is_published,
    'no interval: published rates have no documents' as reason
from internal.published_rates;
