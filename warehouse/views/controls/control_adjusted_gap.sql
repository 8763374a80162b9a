-- The gap of each model at its own cutoff, minus the part common to other models on the same
--   documents.
-- Grain: one row per model, source, protocol; every model with dated figures. source NULL, where
--   scope is all: over all sources of text. There, basis panel is of the mean curve over sources,
--   and basis compressor is the mean of the sources' figures.
-- Units: bits per byte. basis panel: the gap less what is common to models with other cutoffs on
--   the same documents; *_low and *_high bound a 95 % interval over months. basis compressor, where
--   the panel cannot determine the gap (reason): the gap less that of control:zstd. It has no
--   interval over months and no test, because months that are hard only for models count as gap.
--   The interval *_documents covers the variation between documents of these months
--   (compressor_reason). q_value: see panel_tests.
-- Source: docs/metrics.md (The panel, Control-adjusted figures).
create or replace view control_adjusted_gap as
with compressor as (
    select
        model,
        source,
        protocol,
        adjusted_gap,
        adjusted_gap_low,
        adjusted_gap_high,
        num_months_before,
        num_months_after
    from internal.control_adjusted_gap_at(cast(null as date))
    where is_default_control
    union all by name
    select
        model,
        null as source,
        protocol,
        adjusted_gap,
        adjusted_gap_low,
        adjusted_gap_high
    from internal.control_adjusted_gap_overall_at(cast(null as date))
    where is_default_control
)

select
    t.model,
    t.source,
    t.scope,
    t.protocol,
    coalesce(t.value, c.adjusted_gap) as adjusted_gap,
    t.value_low as adjusted_gap_low,
    t.value_high as adjusted_gap_high,
    t.p_value,
    t.q_value,
    case
        when t.value is not null then 'panel'
        when c.adjusted_gap is not null then 'compressor'
    end as basis,
    t.reason,
    c.adjusted_gap as compressor_adjusted_gap,
    c.adjusted_gap_low as compressor_adjusted_gap_low_documents,
    c.adjusted_gap_high as compressor_adjusted_gap_high_documents,
    case
        when c.adjusted_gap_low is not null then null
        when c.adjusted_gap is not null and t.source is null
            then 'no interval over documents: a source has none'
        when c.adjusted_gap is not null then lacking_documents(c.adjusted_gap_low)
        when m.cutoff is null then 'cutoff unknown'
        when t.source is null then 'no source has the figure: see the rows of sources'
        when c.model is null then 'control:zstd has no figure of these months'
        when c.num_months_before + c.num_months_after = 0
            then 'control:zstd has other documents in all months'
        when c.num_months_before = 0
            then 'no month before the cutoff on the documents of control:zstd'
        else 'no month after the cutoff on the documents of control:zstd'
    end as compressor_reason,
    e.num_months_before,
    e.num_months_after
from panel_tests as t
inner join internal.panel_effects as e
    on t.model = e.model and t.source is not distinct from e.source and t.protocol = e.protocol
left join models as m on t.model = m.model
left join compressor as c
    on t.model = c.model and t.source is not distinct from c.source and t.protocol = c.protocol
where t.effect = 'gap';
