-- Coefficients of the monthly figures of a side in figures around a split. For split_errors_at.
-- Grain: one row per model, scope, protocol, is_after, figure (before, after, gap, next); scope is
--   a source, or NULL for the mean over sources. No row if a month of the side has no standard
--   error.
-- Parameter: split_on, as in split_cells_at.
-- Units: coefficient of each of num_cells monthly figures; variance and spread are sums over them.
-- Source: docs/metrics.md (Time, Intervals).
create or replace macro internal.split_coefficients_at(split_on) as table
    with cells as materialized (
        select *
        from internal.split_cells_at(split_on)
        where bits_per_byte is not null
    ),

    scoped as (
        select
            *,
            source as scope
        from cells
        union all by name
        select
            *,
            null as scope
        from cells
        where is_common
    ),

    sides as (
        select
            model,
            scope,
            protocol,
            is_after,
            count(*) as num_cells,
            count(standard_error) = count(*) as has_errors,
            sum(standard_error * standard_error) as variance,
            sum(spread) as spread
        from scoped
        group by model, scope, protocol, is_after
    )

    select
        s.model,
        s.scope,
        s.protocol,
        s.is_after,
        f.figure,
        s.num_cells,
        s.variance,
        s.spread,
        case when s.is_after then f.of_after else f.of_before end / s.num_cells as coefficient
    from sides as s
    inner join (
        values ('before', 1, 0), ('after', 0, 1), ('gap', -1, 1), ('next', -1, 2)
    ) as f (figure, of_before, of_after)
        on case when s.is_after then f.of_after else f.of_before end <> 0
    where s.has_errors;
