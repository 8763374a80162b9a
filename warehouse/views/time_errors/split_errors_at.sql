-- Half widths of the 95 % intervals around any split, for other documents of these months. For
--   gap_errors_at, own_split_errors.
-- Grain: one row per model, scope, protocol; scope is a source, or NULL for the mean over sources.
-- Parameter: split_on, as in split_cells_at.
-- Units: bits per byte; gap_error is gap_standard_error times the quantile of Student's t with
--   gap_degrees. NULL if a side has no month, or a month without a standard error.
-- Source: docs/metrics.md (Intervals); ADR 0016.
create or replace macro internal.split_errors_at(split_on) as table
    with coefficients as materialized (
        select *
        from internal.split_coefficients_at(split_on)
    ),

    figures as (
        select
            model,
            scope,
            protocol,
            figure,
            count(*) = case when figure in ('gap', 'next') then 2 else 1 end as is_complete,
            sum(power(coefficient, 2) * variance) as cell_variance,
            sum(power(coefficient, 4) * spread) as spread,
            sum(power(coefficient, 4) * num_cells) as squares
        from coefficients
        group by model, scope, protocol, figure
    ),

    replicates as (
        select
            c.model,
            c.scope,
            c.protocol,
            c.figure,
            sum(c.coefficient * r.deviation) as deviation,
            sum(power(c.coefficient, 2) * r.weight_deviation) as weight_deviation
        from internal.split_replicates_at(split_on) as r
        inner join coefficients as c
            on
                r.model = c.model
                and r.scope is not distinct from c.scope
                and r.protocol = c.protocol
                and r.is_after = c.is_after
        group by c.model, c.scope, c.protocol, c.figure, r.replicate
    ),

    variances as (
        select
            model,
            scope,
            protocol,
            figure,
            avg(deviation * deviation) as variance,
            avg(weight_deviation * weight_deviation) as overlap
        from replicates
        group by model, scope, protocol, figure
    ),

    standard_errors as (
        select
            f.*,
            sqrt(v.variance) as standard_error,
            satterthwaite(f.cell_variance, f.spread, v.overlap / f.squares) as degrees_of_freedom
        from figures as f
        inner join variances as v
            on
                f.model = v.model
                and f.scope is not distinct from v.scope
                and f.protocol = v.protocol
                and f.figure = v.figure
        where f.is_complete
    ),

    errors as (
        select
            *,
            standard_error * t_975(degrees_of_freedom) as error
        from standard_errors
    )

    select
        model,
        scope,
        protocol,
        max(error) filter (where figure = 'before') as before_error,
        max(error) filter (where figure = 'after') as after_error,
        max(error) filter (where figure = 'gap') as gap_error,
        max(error) filter (where figure = 'next') as next_error,
        max(standard_error) filter (where figure = 'gap') as gap_standard_error,
        max(degrees_of_freedom) filter (where figure = 'gap') as gap_degrees
    from errors
    group by model, scope, protocol;
