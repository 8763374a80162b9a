-- Significance of the difference of two models' means over sources in a month.
-- Grain: one row per model, other_model, protocol, month, in both orders. For other views to read.
-- Parameter: left_out, a list of sources that do not count.
-- Units: as ranked_pairs; the mean over sources is over comparable_cells_at. Degrees of freedom are
--   Satterthwaite's over the sources, the lower value of both models.
-- Source: docs/metrics.md (Intervals).
create or replace macro internal.mean_rank_pairs_at(left_out) as table
    with cells as materialized (
        select * from internal.comparable_cells_at(left_out)
    ),

    figures as (
        select
            protocol,
            model,
            month,
            avg(bits_per_byte) as bits_per_byte,
            case
                when count(standard_error) = count(*)
                    then
                        coalesce(
                            power(sum(power(standard_error, 2)), 2)
                            / nullif(sum(power(standard_error, 4) / degrees_of_freedom), 0),
                            min(degrees_of_freedom)
                        )
            end as degrees_of_freedom
        from cells
        group by protocol, model, month
    ),

    replicates as (
        select
            c.protocol,
            c.model,
            c.month,
            r.replicate,
            avg(r.deviation) as deviation
        from cells as c
        inner join internal.pooled_deviations as r
            on
                c.protocol = r.protocol
                and c.model = r.model
                and c.source = r.source
                and c.month = r.month
        group by c.protocol, c.model, c.month, r.replicate
    ),

    vectors as materialized (
        select
            f.protocol,
            f.model,
            f.month,
            any_value(f.bits_per_byte) as bits_per_byte,
            any_value(f.degrees_of_freedom) as degrees_of_freedom,
            any_value(size_class(m.parameters)) as size_class,
            list(r.deviation order by r.replicate) as deviations
        from figures as f
        inner join replicates as r
            on f.protocol = r.protocol and f.model = r.model and f.month = r.month
        left join main.models as m on f.model = m.model
        group by f.protocol, f.model, f.month
    ),

    errors as (
        select
            a.protocol,
            a.month,
            a.model,
            b.model as other_model,
            coalesce(a.size_class = b.size_class, false) as is_same_class,
            a.bits_per_byte - b.bits_per_byte as difference,
            paired_error(a.deviations, b.deviations) as standard_error,
            case
                when a.degrees_of_freedom <= b.degrees_of_freedom then a.degrees_of_freedom
                when b.degrees_of_freedom < a.degrees_of_freedom then b.degrees_of_freedom
            end as degrees_of_freedom
        from vectors as a
        inner join vectors as b
            on a.protocol = b.protocol and a.month = b.month and a.model <> b.model
    )

    select
        protocol,
        month,
        model,
        other_model,
        is_same_class,
        difference,
        case
            when degrees_of_freedom > 1.999
                then difference_p_value(difference, standard_error, degrees_of_freedom)
        end as p_value
    from errors;
