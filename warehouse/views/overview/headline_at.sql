-- One figure per model, as in headline, over the months of a window.
-- Grain: one row per compared model with a cell in the window.
-- Parameters: first_month and last_month, dates of their first days, both inclusive; NULL: without
--   a limit. The compared models and cells are those of headline: a window does not choose them.
-- Units and intervals: as in headline. Over time, a window needs four blocks of three months.
-- Source: docs/metrics.md (Headline).
create or replace macro headline_at(first_month, last_month) as table
    with figures as materialized (
        select * from internal.headline_figures_at(first_month, last_month)
    ),

    pairs as (
        select
            a.model,
            a.bits_per_byte - b.bits_per_byte as difference,
            paired_error(a.deviations, b.deviations) as document_error,
            case
                when a.degrees_of_freedom <= b.degrees_of_freedom then a.degrees_of_freedom
                else b.degrees_of_freedom
            end as document_degrees,
            sqrt(jackknife_variance(power(list_distance(a.changes, b.changes), 2), len(a.changes)))
                as month_error,
            a.month_degrees
        from figures as a
        inner join figures as b on a.model <> b.model
    ),

    tested as (
        select
            model,
            difference,
            difference_p_value(difference, document_error, document_degrees) as document_p_value,
            time_p_value(difference, document_error, document_degrees, month_error, month_degrees)
                as p_value
        from pairs
        where document_degrees > 1.999
    ),

    signs as (
        select
            model,
            sure_sign(p_value, difference, (select count(*) from figures)) as sign,
            sure_sign(document_p_value, difference, (select count(*) from figures)) as document_sign
        from tested
    ),

    sure as (
        select
            model,
            count(*) filter (where sign > 0) as num_better,
            count(*) filter (where sign < 0) as num_worse,
            count(*) filter (where document_sign > 0) as num_better_documents,
            count(*) filter (where document_sign < 0) as num_worse_documents
        from signs
        group by model
    ),

    halves as (
        select
            *,
            standard_error * t_975(degrees_of_freedom) as document_half,
            wider_half(
                standard_error * t_975(degrees_of_freedom), month_error * t_975(month_degrees)
            ) as half
        from figures
    )

    select
        f.model,
        f.bits_per_byte,
        case when f.half is not null then greatest(0, f.bits_per_byte - f.half) end
            as bits_per_byte_low,
        f.bits_per_byte + f.half as bits_per_byte_high,
        case
            when f.document_half is not null then greatest(0, f.bits_per_byte - f.document_half)
        end as bits_per_byte_low_documents,
        f.bits_per_byte + f.document_half as bits_per_byte_high_documents,
        rank() over (order by f.bits_per_byte) as rank,
        case when f.half is not null then 1 + coalesce(s.num_better, 0) end as rank_low,
        case when f.half is not null then count(*) over () - coalesce(s.num_worse, 0) end
            as rank_high,
        case when f.document_half is not null then 1 + coalesce(s.num_better_documents, 0) end
            as rank_low_documents,
        case
            when f.document_half is not null
                then count(*) over () - coalesce(s.num_worse_documents, 0)
        end as rank_high_documents,
        f.bits_per_byte / 8 as compression_rate,
        f.num_sources,
        max(f.num_months) over () as num_months,
        f.num_unmeasured,
        m.cutoff
    from halves as f
    left join sure as s on f.model = s.model
    left join models as m on f.model = m.model;
