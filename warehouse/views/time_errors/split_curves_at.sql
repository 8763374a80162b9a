-- Monthly curves of each model around a split, for a source or over sources. For
--   split_month_errors_at.
-- Grain: one row per model, scope, protocol, month; scope is a source of calendar months, or NULL
--   for the mean over sources. Published rates are left out: their documents have no
--   known error.
-- Parameter: split_on, as in split_cells_at.
-- Units: bits per byte; residual is the month's figure less the mean of its side. product is the
--   residual times that of the month before, NULL if that is missing or on the other side.
-- Source: docs/metrics.md (Time, Intervals).
create or replace macro internal.split_curves_at(split_on) as table
    with cells as materialized (
        select
            model,
            source,
            protocol,
            month,
            is_after,
            is_common,
            bits_per_byte
        from internal.split_cells_at(split_on)
        where bits_per_byte is not null and protocol <> 'published'
    ),

    scoped as (
        select
            *,
            source as scope
        from cells
        where source_period(source) = 'month'
        union all by name
        select
            *,
            null as scope
        from cells
        where is_common
    ),

    curves as (
        select
            model,
            scope,
            protocol,
            month,
            year(month) * 12 + month(month) as month_number,
            any_value(is_after) as is_after,
            avg(bits_per_byte) as bits_per_byte
        from scoped
        group by model, scope, protocol, month
    ),

    centred as (
        select
            *,
            bits_per_byte - avg(bits_per_byte) over (partition by model, scope, protocol, is_after)
                as residual
        from curves
    )

    select
        model,
        scope,
        protocol,
        month,
        month_number,
        is_after,
        bits_per_byte,
        residual,
        case
            when month_number - lag(month_number) over side = 1
                then residual * lag(residual) over side
        end as product
    from centred
    window side as (partition by model, scope, protocol, is_after order by month_number);
