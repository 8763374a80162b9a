-- The last month with training text by the model's losses, the month from which that text thins
--   out, and whether the stated cutoff agrees.
-- Grain: one row per model, source, protocol; source NULL, where scope is all: of the mean over
--   sources of text. A model's sources may end in different months.
-- basis: the figures that determine the difficulty of the months: panel (other models) or
--   compressor (only compressors). cutoff_text is what may be printed: a month, an interval, or an
--   open interval such as `at or after 2023-06`. estimated_cutoff is NULL unless both ends of its
--   interval are inside the window; reason says why. Intervals are of 95 %; an end that is NULL is
--   open, and is_at_edge is True. detectable_change and q_value: see internal.cutoff_tests.
-- is_contradicted: the stated month (catalogue_cutoff) is outside the interval; NULL if the stated
--   month or both ends of the interval are unknown. Of true cutoffs, the interval leaves out 5 % by
--   chance.
-- Units: months as first days; detectable_change in bits per byte.
-- Source: docs/metrics.md (Cutoffs); docs/cutoffs.md; warehouse/estimates/cutoffs.py; sources:
--   Cheng et al. 2024, "Dated Data", arXiv 2403.12958.
create or replace view estimated_cutoff as
select
    t.model,
    t.source,
    case when t.source is null then 'all' else 'source' end as scope,
    t.protocol,
    t.cutoff_text,
    case when t.is_told then t.cutoff end as estimated_cutoff,
    case when t.is_found then t.cutoff_low end as estimated_cutoff_low,
    case when t.is_found then t.cutoff_high end as estimated_cutoff_high,
    case when t.is_told then t.onset end as cutoff_onset,
    case when t.is_found then not t.is_told end as is_at_edge,
    t.detectable_change,
    t.q_value,
    t.catalogue_cutoff,
    m.cutoff_provenance,
    case
        when
            t.is_found and t.catalogue_cutoff is not null
            and coalesce(t.cutoff_low, t.cutoff_high) is not null
            then
                t.catalogue_cutoff < coalesce(t.cutoff_low, t.catalogue_cutoff)
                or t.catalogue_cutoff > coalesce(t.cutoff_high, t.catalogue_cutoff)
    end as is_contradicted,
    t.basis,
    t.reason
from internal.cutoff_tests as t
left join main.models as m on t.model = m.model;
