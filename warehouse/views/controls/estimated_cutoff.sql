-- The last month with training text, and the month from which it thins out, by the model's losses.
-- Grain: one row per model, source, protocol; source NULL, where scope is all: of the mean over
--   sources of text. A model's sources may end in different months.
-- basis: panel (other models tell the difficulty of the months) or compressor (only these do).
--   cutoff_text is what may be printed. estimated_cutoff is NULL unless both ends of its interval
--   are inside the window; reason says why. Intervals are of 95 %; an end that is NULL is open, and
--   is_at_edge is True. q_value: see internal.cutoff_tests.
-- Units: months as first days; jump in bits per byte. cutoff_registry has the detectable change.
-- Source: docs/metrics.md (Cutoffs); warehouse/estimates/cutoffs.py; sources: Cheng et al. 2024,
--   "Dated Data", arXiv 2403.12958.
create or replace view estimated_cutoff as
select
    model,
    source,
    case when source is null then 'all' else 'source' end as scope,
    protocol,
    cutoff_text,
    case when is_told then cutoff end as estimated_cutoff,
    case when is_found then cutoff_low end as estimated_cutoff_low,
    case when is_found then cutoff_high end as estimated_cutoff_high,
    case when is_told then onset end as cutoff_onset,
    case when is_told then onset_low end as cutoff_onset_low,
    case when is_told then onset_high end as cutoff_onset_high,
    case when is_found then not is_told end as is_at_edge,
    case when is_found then jump end as jump_bits_per_byte,
    q_value,
    catalogue_cutoff,
    basis,
    reason
from internal.cutoff_tests;
