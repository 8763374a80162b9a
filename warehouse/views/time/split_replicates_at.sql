-- Sums of the replicates' deviations before and after a split. For split_errors_at.
-- Grain: one row per model, scope, protocol, is_after, replicate; scope is a source, or NULL for
--   the cells that count in means over sources.
-- Parameter: split_on, as in split_cells_at.
-- Units: deviation in bits per byte.
-- Source: docs/metrics.md (Intervals).
create or replace macro internal.split_replicates_at(split_on) as table
    with sides as materialized (
        select
            *,
            dense_rank() over (order by model, source, protocol, is_after, is_common) as side
        from internal.split_cells_at(split_on)
    ),

    -- One number stands for side and replicate: grouping by several columns takes four times as
    --   long.
    numbered as (
        select
            s.side * 256 + d.replicate as place,
            sum(d.deviation) as deviation,
            sum(d.weight_deviation) as weight_deviation
        from internal.pooled_deviations as d
        inner join sides as s
            on
                d.model = s.model
                and d.source = s.source
                and d.protocol = s.protocol
                and d.month = s.month
        group by s.side * 256 + d.replicate
    ),

    keys as (
        select distinct
            side,
            model,
            source,
            protocol,
            is_after,
            is_common
        from sides
    ),

    sums as materialized (
        select
            k.*,
            n.place % 256 as replicate,
            n.deviation,
            n.weight_deviation
        from numbered as n
        inner join keys as k on n.place // 256 = k.side
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
