-- Stated cutoffs against measured ones, over all sources and by source.
-- Grain: one row per model, source, protocol; source is NULL where scope is all, their mean.
--   Compressors have no cutoff and no row.
-- stated_cutoff is that of the catalogue, measured_cutoff what may be printed of estimated_cutoff:
--   a month, an interval, or an open interval such as `at or after 2023-06`. Intervals are of 95 %;
--   an end that is NULL is open. If nothing was found, reason says why.
-- is_contradicted: the stated month is outside the interval; NULL if it is not known, or no end of
--   the interval is. Of true cutoffs, the interval leaves out 5 % by chance.
-- Units: months as first days; detectable_change (see internal.cutoff_tests) in bits per byte.
-- Source: docs/metrics.md (Cutoffs); docs/cutoffs.md.
create or replace view cutoff_registry as
select
    t.model,
    t.source,
    case when t.source is null then 'all' else 'source' end as scope,
    t.protocol,
    m.role,
    t.catalogue_cutoff as stated_cutoff,
    m.cutoff_provenance,
    t.cutoff_text as measured_cutoff,
    case when t.is_found then t.cutoff_low end as measured_cutoff_low,
    case when t.is_found then t.cutoff_high end as measured_cutoff_high,
    case
        when
            t.is_found and t.catalogue_cutoff is not null
            and coalesce(t.cutoff_low, t.cutoff_high) is not null
            then
                t.catalogue_cutoff < coalesce(t.cutoff_low, t.catalogue_cutoff)
                or t.catalogue_cutoff > coalesce(t.cutoff_high, t.catalogue_cutoff)
    end as is_contradicted,
    t.detectable_change,
    t.basis,
    t.reason
from internal.cutoff_tests as t
left join main.models as m on t.model = m.model
where not is_compressor(t.model);
