-- Generalization and robustness of each model, split at its own cutoff, with ranks.
-- Grain: one row per model, source, protocol; source NULL is the mean over sources of text. Only
--   models with a cutoff in the catalogue.
-- Units and columns: as generalization_robustness_at.
-- Source: Li et al. 2024, Figure 2b; docs/metrics.md (Ranks).
-- generalization_robustness_at has further columns.
create or replace view papers.generalization_robustness as
select
    model,
    source,
    scope,
    protocol,
    rank,
    rank_in_band,
    expected_next,
    bits_per_byte_gap,
    bits_per_byte_gap_low,
    bits_per_byte_gap_high,
    bits_per_byte_after,
    num_months_before,
    num_months_after,
    size_band,
    split_date,
    split_basis,
    reason
from papers.generalization_robustness_at(cast(null as date));
