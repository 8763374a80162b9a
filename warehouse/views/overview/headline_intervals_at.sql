-- The figures of headline_at with both of their intervals: over time, and over documents.
-- Grain: one row per compared model with a cell in the window.
-- Parameters: as in headline_at.
-- Units: bits_per_byte is the unweighted mean over sources of the unweighted mean over months.
--   internal.eligible_cells and compared_cells define which cells and models count.
-- low and high bound 95 % intervals over time: would other months like these give the same figure?
--   *_documents: would other documents of these months? The former is the wider of the latter and
--   of a jackknife over blocks of three calendar months. It is NULL if a source has fewer than four
--   blocks; *_documents is NULL if a cell has no pooled error (pooled_errors). reason says so.
-- An interval of a rank is from 1 + (significantly better models) to all - (significantly worse
--   models), as in monthly_rank.
-- next_*: the model against the next one by rank, on the same cells. next_p_value_adjusted is
--   Bonferroni's over the ranked models. resolution: half the width of the interval over time (or,
--   while months are too few, documents) of a difference, median over pairs; the same in all rows.
-- saved_share: 1 - the model's figure / that of control:zstd. The error of the ratio is that of its
--   first-order change, with paired replicates and blocks.
-- Source: docs/metrics.md (Headline, New text).
create or replace macro internal.headline_intervals_at(first_month, last_month, months) as table
    with figures as materialized (
        select
            *,
            case
                when is_ranked
                    then
                        row_number() over (
                            partition by is_ranked order by bits_per_byte, model
                        )
            end as place,
            count(*) filter (where is_ranked) over () as num_ranked
        from internal.headline_figures_at(first_month, last_month, months)
    ),

    pairs as (
        select
            a.model,
            a.num_ranked,
            b.model as other_model,
            b.place = a.place + 1 as is_next,
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
        where a.is_ranked and b.is_ranked
    ),

    tested as materialized (
        select
            *,
            document_error * t_975(document_degrees) as document_half,
            wider_half(document_half, month_error * t_975(month_degrees)) as half,
            case
                when document_degrees > 1.999
                    then difference_p_value(difference, document_error, document_degrees)
            end as document_p_value,
            case
                when document_degrees > 1.999
                    then
                        time_p_value(
                            difference,
                            document_error,
                            document_degrees,
                            month_error,
                            month_degrees
                        )
            end as p_value
        from pairs
    ),

    signs as (
        select
            *,
            sure_sign(p_value, difference, num_ranked) as sign,
            sure_sign(document_p_value, difference, num_ranked) as document_sign
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

    shares as (
        select
            f.model,
            1 - f.bits_per_byte / z.bits_per_byte as saved_share,
            paired_error(
                f.deviations,
                list_transform(z.deviations, lambda x: x * f.bits_per_byte / z.bits_per_byte)
            ) / z.bits_per_byte * t_975(
                case
                    when f.degrees_of_freedom <= z.degrees_of_freedom then f.degrees_of_freedom
                    else z.degrees_of_freedom
                end
            ) as document_half,
            sqrt(
                jackknife_variance(
                    power(
                        list_distance(
                            f.changes,
                            list_transform(
                                z.changes, lambda x: x * f.bits_per_byte / z.bits_per_byte
                            )
                        ),
                        2
                    ),
                    len(f.changes)
                )
            ) / z.bits_per_byte * t_975(f.month_degrees) as month_half
        from figures as f
        inner join figures as z on z.model = 'control:zstd' and f.model <> z.model
        where z.bits_per_byte > 0
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
        case
            when f.is_ranked then rank() over (partition by f.is_ranked order by f.bits_per_byte)
        end as rank,
        case when f.is_ranked and f.half is not null then 1 + coalesce(s.num_better, 0) end
            as rank_low,
        case
            when f.is_ranked and f.half is not null
                then f.num_ranked - coalesce(s.num_worse, 0)
        end as rank_high,
        case
            when f.is_ranked and f.document_half is not null
                then 1 + coalesce(s.num_better_documents, 0)
        end as rank_low_documents,
        case
            when f.is_ranked and f.document_half is not null
                then f.num_ranked - coalesce(s.num_worse_documents, 0)
        end as rank_high_documents,
        f.basis,
        f.num_sources,
        max(f.num_months) over () as num_months,
        f.num_unmeasured,
        m.cutoff,
        coalesce(
            lacking_blocks(f.num_blocks),
            lacking_documents(f.document_half),
            unranked_reason(f.is_ranked, f.model, f.basis)
        ) as reason,
        case
            when n.other_model is null then 'no next model by rank'
            else lacking_blocks(f.num_blocks)
        end as next_reason,
        n.other_model as next_model,
        n.difference as next_difference,
        n.difference - n.half as next_difference_low,
        n.difference + n.half as next_difference_high,
        case when n.p_value is not null then least(1, n.p_value * (f.num_ranked - 1)) end
            as next_p_value_adjusted,
        (select coalesce(median(t.half), median(t.document_half)) from tested as t) as resolution,
        z.saved_share,
        z.saved_share - wider_half(z.document_half, z.month_half) as saved_share_low,
        z.saved_share + wider_half(z.document_half, z.month_half) as saved_share_high,
        z.saved_share - z.document_half as saved_share_low_documents,
        z.saved_share + z.document_half as saved_share_high_documents
    from halves as f
    left join sure as s on f.model = s.model
    left join tested as n on f.model = n.model and n.is_next
    left join shares as z on f.model = z.model
    left join models as m on f.model = m.model;
