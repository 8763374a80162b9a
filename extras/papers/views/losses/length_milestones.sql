-- Losses of the first 10, 30, 50 … 2000 scored tokens of documents: loss falls with length.
-- Grain: one row per model, source, month, protocol, milestone.
-- Units: as the names say. Figures are ratios of sums over the documents with at least `milestone`
--   tokens. With every milestone, these documents become fewer and longer.
-- Cells with a loss that is not finite are left out, as in monthly_loss.
-- Tokens of different tokenizers cover different lengths of text: compare models by bits_per_byte.
-- Source: Zhu et al. 2024, arXiv 2405.08460; docs/metrics.md (Likelihood).
create or replace view papers.length_milestones as
select
    model,
    source,
    month,
    protocol,
    milestone,
    num_documents,
    nll_nats,
    nll_nats / nullif(milestone * num_documents, 0) as nats_per_token,
    nll_nats / (ln(2) * nullif(num_bytes, 0)) as bits_per_byte,
    nll_nats / (ln(2) * nullif(num_chars, 0)) as bits_per_char
from main.cell_milestones as m
anti join main.chunk_losses as u
    on
        m.model = u.model
        and m.source = u.source
        and m.month is not distinct from u.month
        and m.protocol = u.protocol
        and u.nll_nats is null
        and u.reason = 'non_finite';
