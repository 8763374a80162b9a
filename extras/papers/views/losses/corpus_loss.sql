-- Compression figures of a model on an undated corpus.
-- Grain: one row per model, source, protocol.
-- Units: as the names say; compression_rate is a fraction (compressed size / raw size). Sums,
--   ratios and intervals are as in monthly_loss. *_documents: would other documents like these say
--   the same? An undated corpus has no interval over time.
-- average_bits_per_char: unweighted mean over the corpora that all models of the protocol have
--   measured (num_corpora_averaged), equal in all rows of a model and protocol; NULL without such a
--   corpus.
-- Source: docs/metrics.md (Likelihood); Huang et al. 2024, arXiv 2404.09937 (the average column).
-- Further columns: internal.corpus_loss_details.
create or replace view papers.corpus_loss as
select
    model,
    source,
    protocol,
    bits_per_byte,
    bits_per_byte_low_documents,
    bits_per_byte_high_documents,
    average_bits_per_char,
    num_corpora_averaged,
    num_documents,
    num_unmeasured,
    nll_nats,
    num_tokens,
    num_chars,
    num_bytes,
    bits_per_char,
    compression_rate,
    reason
from internal.corpus_loss_details;
