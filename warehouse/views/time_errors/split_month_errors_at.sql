-- Half widths of the 95 % intervals around any split, for other months. For gap_month_errors_at and
--   own_month_errors.
-- Grain: one row per model, scope, protocol with at least two blocks of three months more than
--   sides; scope is a source, or NULL for the mean over sources.
-- Parameter: split_on, as in split_cells_at.
-- A month differs from the mean of its side by a shock. All shocks have one variance, and a
--   correlation of memory^(months between them). Student's t has one degree of freedom per block of
--   three months of a side, less one per side.
-- Units: bits per byte; NULL if a side has fewer than three months. shock: standard deviation of a
--   month.
-- Source: docs/metrics.md (Intervals); ADR 0016.
create or replace macro internal.split_month_errors_at(split_on) as table
    with months as materialized (
        from internal.split_curves_at(split_on)
    ),

    curves as (
        select
            model,
            scope,
            protocol,
            count(*) filter (where not is_after) as num_before,
            count(*) filter (where is_after) as num_after,
            count(distinct is_after) as num_sides,
            sum(residual * residual) as squares,
            avg(product) / nullif(avg(residual * residual), 0) as correlation
        from months
        group by model, scope, protocol
    ),

    memories as (
        select
            *,
            num_before // 3 + num_after // 3 - num_sides as degrees_of_freedom,
            month_memory(correlation, num_sides, num_before + num_after) as memory
        from curves
        where num_before // 3 + num_after // 3 - num_sides >= 2
    ),

    pairs as (
        select
            c.* exclude (correlation),
            l.is_after as is_later_after,
            e.is_after as is_earlier_after,
            case when l.month_number = e.month_number then 1 else 2 end
            * power(c.memory, l.month_number - e.month_number) as correlation
        from memories as c
        inner join months as l
            on
                c.model = l.model
                and c.scope is not distinct from l.scope
                and c.protocol = l.protocol
        inner join months as e
            on
                l.model = e.model
                and l.scope is not distinct from e.scope
                and l.protocol = e.protocol
                and l.month_number >= e.month_number
    ),

    -- Variances of the means of the sides, and their covariance, in squared shocks.
    means as (
        select
            model,
            scope,
            protocol,
            num_before,
            num_after,
            squares,
            degrees_of_freedom,
            memory,
            sum(correlation) filter (where not is_later_after) / power(num_before, 2) as before,
            sum(correlation) filter (where is_earlier_after) / power(num_after, 2) as after,
            sum(correlation) filter (where is_later_after and not is_earlier_after)
            / (2 * num_before * num_after) as covariance
        from pairs
        group by
            model, scope, protocol, num_before, num_after, squares, degrees_of_freedom, memory
    ),

    shocks as (
        select
            *,
            t_975(degrees_of_freedom) as quantile,
            sqrt(
                squares / (
                    num_before * (1 - coalesce(before, 1)) + num_after * (1 - coalesce(after, 1))
                )
            ) as shock
        from means
    )

    select
        model,
        scope,
        protocol,
        degrees_of_freedom,
        case when num_before >= 3 then quantile * shock * sqrt(before) end as before_error,
        case when num_after >= 3 then quantile * shock * sqrt(after) end as after_error,
        case
            when least(num_before, num_after) >= 3
                then quantile * shock * sqrt(before + after - 2 * covariance)
        end as gap_error,
        case
            when least(num_before, num_after) >= 3
                then quantile * shock * sqrt(before + 4 * after - 4 * covariance)
        end as next_error,
        case
            when least(num_before, num_after) >= 3
                then shock * sqrt(before + after - 2 * covariance)
        end as gap_standard_error,
        shock,
        memory
    from shocks;
