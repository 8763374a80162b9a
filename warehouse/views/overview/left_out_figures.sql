-- Models that a view of figures leaves out, or shows with NULL, each with the reason.
-- Grain: one row per model, source, protocol, view (left_out_of), reason; source NULL: all sources.
--   For other views to read. Only effect_difference has several reasons, one per effect.
-- A reason that begins with "no interval" is of a figure without an interval over time.
-- Sources of half-months and weeks have no figures of views that compare sources, or count months.
-- Only cells without any figure have a row for monthly_rank. Views with a column `reason` have rows
--   here only for compressors and for cells without any figure.
-- Source: docs/metrics.md (Time, The panel, Ranks, Power, Headline).
create or replace view internal.left_out_figures as
with figures as (
    select
        l.model,
        l.source,
        l.protocol,
        l.month,
        l.standard_error,
        m.cutoff,
        date_diff('month', date_trunc('month', m.released), l.month) as months_after
    from internal.monthly_loss_details as l
    left join main.models as m on l.model = m.model
    where l.bits_per_byte is not null
),

counted as (
    select
        model,
        source,
        protocol,
        count(*) as num_months,
        count(standard_error) as num_errors,
        count(*) filter (where month <= cutoff) as num_before,
        count(*) filter (where month > cutoff) as num_after,
        count(*) filter (where months_after between -6 and -1) as num_base,
        greatest(
            count(*) filter (where months_after between 0 and 2),
            count(*) filter (where months_after between 3 and 5),
            count(*) filter (where months_after between 6 and 8),
            count(*) filter (where months_after between 9 and 11)
        ) as num_in_quarter
    from figures
    group by model, source, protocol
),

classed as (
    select distinct
        model,
        source,
        protocol
    from main.byte_class_losses
),

cells as (
    select
        model,
        source,
        protocol,
        bool_or(month is not null) as is_dated
    from internal.landed_cells
    where source_period(source) = 'month'
    group by model, source, protocol
    union all
    select distinct
        model,
        source,
        'published' as protocol,
        true as is_dated
    from internal.published_rates
),

judged as (
    select
        c.model,
        c.source,
        c.protocol,
        case
            when not c.is_dated then 'undated'
            when n.num_months is null then 'no month with a figure'
        end as no_figure,
        case when is_compressor(c.model) then 'compressor' end as no_panel,
        case
            when no_panel is not null then 'compressor'
            when m.cutoff is null then 'cutoff unknown'
            when n.num_before = 0 then 'no month before the cutoff'
            when n.num_after = 0 then 'no month after the cutoff'
        end as no_gap,
        case
            when no_panel is not null then 'compressor'
            when m.released is null then 'release unknown'
            when n.num_base < minimum('months of the base')
                then
                    too_few(
                        n.num_base, 'month', ' right before the release', 'months of the base'
                    )
            when n.num_in_quarter < 3 then 'no quarter after the release has all months'
        end as no_decay,
        case when n.num_months = 1 then 'a single month' end as no_slope,
        case
            when no_panel is not null then 'compressor'
            when b.model is null then 'no cell has losses by class of byte'
            when m.cutoff is null then 'cutoff unknown'
        end as no_class,
        i.gap_reason,
        i.slope_reason,
        i.decay_reason,
        case
            when c.protocol = 'published' then 'published rates: no documents'
            when n.num_errors = 0 then 'each month has a single cluster'
            when n.num_months < minimum('months of a slope')
                then
                    'of documents alone: '
                    || too_few(n.num_months, 'month', '', 'months of a slope')
        end as no_power,
        case when k.model is null then 'other months than the most common ones' end as no_rank
    from cells as c
    left join counted as n
        on c.model = n.model and c.source = n.source and c.protocol = n.protocol
    left join main.models as m on c.model = m.model
    left join internal.commonest_months as k
        on c.model = k.model and c.source = k.source and c.protocol = k.protocol
    left join classed as b
        on c.model = b.model and c.source = b.source and c.protocol = b.protocol
    left join internal.interval_reasons as i
        on c.model = i.model and c.source = i.source and c.protocol = i.protocol
),

compared as materialized (
    select * from main.compared_cells
),

-- Blocks of three calendar months of the sources of headline.
blocks_of_sources as (
    select
        model,
        count(distinct date_trunc('quarter', month)) as num_blocks
    from compared
    group by model, source
),

reasons as (
    select
        model,
        source,
        protocol,
        unnest([
            'monthly_rank', 'train_test_gap', 'generalization_robustness', 'control_adjusted_gap',
            'decay_by_horizon', 'tbi_likelihood', 'detectable_gap_at', 'age_in_parameters',
            'byte_class_gap_at', 'effect_difference', 'effect_difference', 'effect_difference'
        ]) as left_out_of,
        unnest([
            no_figure,
            coalesce(no_figure, no_gap, gap_reason),
            coalesce(no_figure, no_gap, no_rank),
            coalesce(no_figure, no_panel),
            coalesce(no_figure, no_decay, decay_reason),
            coalesce(no_figure, no_slope, slope_reason),
            coalesce(no_figure, no_power),
            coalesce(no_figure, no_panel),
            coalesce(no_figure, no_class),
            'gap, growth: ' || coalesce(no_figure, no_panel),
            'slope: ' || coalesce(no_figure, no_slope, slope_reason),
            'decay: ' || coalesce(no_figure, no_decay, decay_reason)
        ]) as reason
    from judged
    union all
    select distinct
        c.model,
        c.source,
        c.protocol,
        v.left_out_of,
        v.lack || source_period(c.source) || 's' as reason
    from internal.landed_cells as c
    cross join (
        values
        ('train_test_gap', 'no interval: a source of '),
        ('generalization_robustness', 'a source of '),
        ('control_adjusted_gap', 'a source of '),
        ('decay_by_horizon', 'a source of '),
        ('tbi_likelihood', 'a source of '),
        ('detectable_gap_at', 'a source of '),
        ('age_in_parameters', 'a source of '),
        ('effect_difference', 'a source of ')
    ) as v (left_out_of, lack)
    where source_period(c.source) <> 'month' and c.month is not null
    union all
    select
        model,
        null as source,
        protocol,
        unnest(['train_test_gap', 'tbi_likelihood']) as left_out_of,
        unnest([gap_reason, slope_reason]) as reason
    from internal.overall_reasons
    union all
    select
        model,
        source,
        protocol,
        'effect_difference' as left_out_of,
        effect || ': ' || reason as reason
    from main.panel_tests
    where value is null
    union all
    select
        model,
        null as source,
        'default' as protocol,
        'headline' as left_out_of,
        lacking_blocks(min(num_blocks)) as reason
    from blocks_of_sources
    group by model
    union all
    select
        model,
        null as source,
        'default' as protocol,
        'headline' as left_out_of,
        reason
    from internal.uncompared_models
)

select *
from reasons
where reason is not null;
