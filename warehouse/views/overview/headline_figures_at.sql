-- The figures of headline_at, and the inputs of their intervals. For headline_at to read.
-- Grain: one row per compared model with a cell in the window.
-- Parameters: those of compared_cells_at.
-- Units: bits per byte: the unweighted mean over sources of the unweighted mean over months.
--   num_months counts the different months of all sources. deviations: bootstrap replicates less
--   the figure, in the order of replicates; NULL if a cell has no standard error.
--   degrees_of_freedom: Satterthwaite's over cells, as for the intervals around a split (ADR 0016).
-- changes: changes of the figure without a block of three calendar months, in the order of blocks.
--   month_error is the jackknife's with them. Both are NULL if a source has fewer than four blocks;
--   num_blocks is that of the source with fewest.
-- Source: docs/metrics.md (Likelihood, Intervals).
create or replace macro internal.headline_figures_at(first_month, last_month, months) as table
    with compared as materialized (
        select *
        from internal.compared_cells_at(first_month, last_month, months)
    ),

    sources as (
        select
            model,
            source,
            1 / (count(*) * (select count(distinct s.source) from compared as s)) as coefficient
        from compared
        group by model, source
    ),

    cells as materialized (
        select
            c.*,
            e.standard_error,
            e.degrees_of_freedom,
            s.coefficient
        from compared as c
        inner join sources as s on c.model = s.model and c.source = s.source
        inner join internal.pooled_errors as e
            on
                c.model = e.model
                and c.source = e.source
                and c.month = e.month
                and e.protocol = 'default'
    ),

    figures as (
        select
            model,
            bool_and(is_ranked) as is_ranked,
            any_value(basis) as basis,
            count(distinct source) as num_sources,
            count(distinct month) as num_months,
            cast(sum(num_unmeasured) as bigint) as num_unmeasured,
            sum(coefficient * bits_per_byte) as bits_per_byte,
            count(standard_error) = count(*) as has_interval,
            coalesce(
                power(sum(power(coefficient * standard_error, 2)), 2)
                / nullif(sum(power(coefficient * standard_error, 4) / degrees_of_freedom), 0),
                min(degrees_of_freedom)
            ) as degrees_of_freedom
        from cells
        group by model
    ),

    replicates as (
        select
            c.model,
            r.replicate,
            sum(c.coefficient * r.deviation) as deviation
        from internal.pooled_deviations as r
        inner join cells as c
            on
                r.model = c.model
                and r.source = c.source
                and r.month = c.month
                and r.protocol = 'default'
        -- The cells' months, again: replicates of others are not read.
        where
            (first_month is null or r.month >= first_month)
            and (last_month is null or r.month <= last_month)
        group by c.model, r.replicate
    ),

    quarters as (
        select
            model,
            source,
            date_trunc('quarter', month) as quarter,
            count(*) as num_months,
            sum(bits_per_byte) as bits_per_byte
        from cells
        group by model, source, date_trunc('quarter', month)
    ),

    changes as (
        select
            model,
            quarter,
            count(*) over curve as num_blocks,
            change_without(
                bits_per_byte, num_months, sum(bits_per_byte) over curve, sum(num_months) over curve
            ) as change
        from quarters
        window curve as (partition by model, source)
    ),

    blocks as (
        select
            c.model,
            c.quarter,
            min(c.num_blocks) as num_blocks,
            sum(c.change) / any_value(f.num_sources) as change
        from changes as c
        inner join figures as f on c.model = f.model
        group by c.model, c.quarter
    ),

    jackknives as (
        select
            model,
            min(num_blocks) as num_blocks,
            min(num_blocks) >= minimum('blocks of a difference') as has_blocks,
            list(change order by quarter) as changes,
            sqrt(jackknife_variance(sum(power(change, 2)), count(*))) as month_error,
            min(num_blocks) - 1 as month_degrees
        from blocks
        group by model
    ),

    vectors as (
        select
            model,
            list(deviation order by replicate) as deviations,
            sqrt(avg(deviation * deviation)) as standard_error
        from replicates
        group by model
    )

    select
        f.model,
        f.is_ranked,
        f.basis,
        f.num_sources,
        f.num_months,
        f.num_unmeasured,
        f.bits_per_byte,
        v.standard_error,
        f.degrees_of_freedom,
        v.deviations,
        j.num_blocks,
        case when j.has_blocks then j.month_error end as month_error,
        case when j.has_blocks then j.month_degrees end as month_degrees,
        case when j.has_blocks then j.changes end as changes
    from figures as f
    left join vectors as v on f.model = v.model and f.has_interval
    left join jackknives as j on f.model = j.model;
