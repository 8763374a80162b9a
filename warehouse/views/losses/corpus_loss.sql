-- What a model's losses on an undated corpus come to.
-- Grain: one row per model, source, protocol.
-- Units: as the names say; compression_rate is a fraction (compressed size / raw size). Sums,
--   ratios and intervals as in monthly_loss.
-- average_bits_per_char: the unweighted mean over the num_corpora_averaged corpora that every
--   model of the protocol has measured, the same in all its rows; NULL where there is none.
-- Source: docs/metrics.md (Likelihood); Huang et al. 2024, arXiv 2404.09937 (the average column).
-- Further columns: internal.corpus_loss_details.
create or replace view corpus_loss as
select
    model,
    source,
    protocol,
    bits_per_byte,
    bits_per_byte_low,
    bits_per_byte_high,
    average_bits_per_char,
    num_corpora_averaged,
    num_documents,
    num_unmeasured,
    nll_nats,
    num_tokens,
    num_chars,
    num_bytes,
    bits_per_char,
    compression_rate
from internal.corpus_loss_details;
