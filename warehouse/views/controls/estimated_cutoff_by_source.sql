-- Cutoffs of estimated_cutoff, by source: a model's sources may end in different months.
-- Grain: one row per model, source, protocol. Units and NULLs: as estimated_cutoff.
-- Source: docs/metrics.md (Cutoffs); Cheng et al. 2024, "Dated Data", arXiv 2403.12958.
create or replace view estimated_cutoff_by_source as
select
    model,
    source,
    protocol,
    cutoff_text,
    case when is_told then cutoff end as estimated_cutoff,
    case when is_found then cutoff_low end as estimated_cutoff_low,
    case when is_found then cutoff_high end as estimated_cutoff_high,
    case when is_told then onset end as cutoff_onset,
    case when is_told then onset_low end as cutoff_onset_low,
    case when is_told then onset_high end as cutoff_onset_high,
    case when is_found then not is_told end as is_at_edge,
    detectable_change,
    p_value,
    q_value,
    catalogue_cutoff,
    basis,
    reason
from internal.cutoff_tests
where source is not null;
