-- Sums of the replicates' deviations before and after a split. For gap_errors_at.
-- Grain: one row per model, scope, protocol, is_after, replicate; scope is a source, or NULL for
--   the cells that count in means over sources.
-- Parameter: split_on, as in split_cells_at.
-- Units: deviation in bits per byte.
-- Source: docs/metrics.md (Intervals).
create or replace macro internal.split_replicates_at(split_on) as table
    with sums as materialized (
        select
            c.model,
            c.source,
            c.protocol,
            c.is_after,
            c.is_common,
            d.replicate,
            sum(d.deviation) as deviation,
            sum(d.weight_deviation) as weight_deviation
        from internal.pooled_deviations as d
        inner join internal.split_cells_at(split_on) as c
            on
                d.model = c.model
                and d.source = c.source
                and d.protocol = c.protocol
                and d.month = c.month
        group by c.model, c.source, c.protocol, c.is_after, c.is_common, d.replicate
    ),

    scoped as (
        select
            *,
            source as scope
        from sums
        union all by name
        select
            *,
            null as scope
        from sums
        where is_common
    )

    select
        model,
        scope,
        protocol,
        is_after,
        replicate,
        sum(deviation) as deviation,
        sum(weight_deviation) as weight_deviation
    from scoped
    group by model, scope, protocol, is_after, replicate;
