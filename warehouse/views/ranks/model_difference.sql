-- Difference of every two models on the documents of new months that both were scored on.
-- Grain: one row per model, other_model, source, protocol; model comes first in the alphabet.
--   source NULL is the mean over the sources of text that both models have (num_sources). If one
--   of them has four blocks of three months, those with fewer are left out of the mean.
-- basis: which months. Only months after the cutoffs of both count (training_ends): as `after
--   2024-01`. If no month that both have is later, difference is NULL. Where nothing is known of a
--   model's training, months may have been seen by it, and basis says so.
-- Units: bits per byte. difference is model less other_model (negative: model is better), as the
--   unweighted mean over shared months. *_low and *_high bound the 95 % interval of this one
--   difference over time: would other months like these give the same figure? *_documents: would
--   other documents of these months? The former is the wider of the latter and of a jackknife over
--   blocks of three calendar months. It is NULL where reason says why.
-- p_value is of no difference, by the interval over time. p_value_adjusted is Holm's: if rows below
--   5 % count as real differences, the probability of any error in a family is at most 5 %. A
--   family is all rows of a protocol with a source, or all means.
-- In the mean, documents of sources count as independent; a block of months is left out of all
--   sources at once.
-- Source: Holm 1979; docs/metrics.md (Pairs, New text, Intervals).
create or replace view model_difference as
with rows_of_sources as materialized (
    select
        *,
        is_text and (
            num_blocks >= minimum('blocks of a difference')
            or max(case when is_text then num_blocks end) over pair
            < minimum('blocks of a difference')
        ) as is_counted
    from internal.source_differences
    window pair as (partition by model, other_model, protocol)
),

changes_of_sources as (
    select
        model,
        other_model,
        protocol,
        unnest(blocks) as block
    from rows_of_sources
    where is_counted
),

-- Sums over sources; a source without months in a block does not change.
changes as (
    select
        model,
        other_model,
        protocol,
        block.quarter,
        sum(block.change) as change
    from changes_of_sources
    group by model, other_model, protocol, block.quarter
),

errors_of_means as (
    select
        model,
        other_model,
        protocol,
        sqrt(jackknife_variance(sum(power(change, 2)), count(*))) as month_error
    from changes
    group by model, other_model, protocol
),

means as (
    select
        model,
        other_model,
        protocol,
        count(*) as num_sources,
        cast(sum(num_months) as bigint) as num_months,
        cast(sum(num_documents) as bigint) as num_documents,
        avg(difference) as difference,
        case
            when count(standard_error) = count(*)
                then sqrt(sum(power(standard_error, 2))) / count(*)
        end as document_error,
        coalesce(
            power(sum(power(standard_error, 2)), 2)
            / nullif(sum(power(standard_error, 4) / degrees_of_freedom), 0),
            min(degrees_of_freedom)
        ) as document_degrees,
        min(num_blocks) as num_blocks
    from rows_of_sources
    where is_counted
    group by model, other_model, protocol
),

rows_and_means as (
    select
        model,
        other_model,
        source,
        protocol,
        1 as num_sources,
        num_months,
        num_documents,
        difference,
        standard_error as document_error,
        degrees_of_freedom as document_degrees,
        num_blocks,
        month_error
    from rows_of_sources
    union all by name
    select
        m.*,
        null as source,
        e.month_error / m.num_sources as month_error
    from means as m
    inner join errors_of_means as e
        on m.model = e.model and m.other_model = e.other_model and m.protocol = e.protocol
),

-- Pairs whose common months are all up to the end of a training, on a source or on all.
curves as (
    select
        model,
        source,
        protocol,
        bool_and(num_chars > 0) as is_text,
        list(month) as months
    from internal.sound_cells
    where month is not null and num_bytes > 0 and source_period(source) = 'month'
    group by model, source, protocol
),

common_curves as (
    select
        a.model,
        b.model as other_model,
        a.source,
        a.protocol,
        a.is_text,
        list_max(list_intersect(a.months, b.months)) as last_month
    from curves as a
    inner join curves as b
        on a.source = b.source and a.protocol = b.protocol and a.model < b.model
),

common as (
    select
        model,
        other_model,
        source,
        protocol,
        last_month
    from common_curves
    union all
    select
        model,
        other_model,
        null as source,
        protocol,
        max(last_month) as last_month
    from common_curves
    where is_text
    group by model, other_model, protocol
),

known as (
    select
        a.model,
        b.model as other_model,
        greatest(a.last_month, b.last_month) as last_seen,
        case
            when a.known_by = 'nothing' or b.known_by = 'nothing'
                then 'cutoff unknown: months may have been seen in training'
            when last_seen is null then 'never trained'
            else 'after ' || strftime(last_seen, '%Y-%m')
        end as basis
    from training_ends as a
    inner join training_ends as b on a.model < b.model
),

all_pairs as (
    select * from rows_and_means
    union all by name
    select
        c.model,
        c.other_model,
        c.source,
        c.protocol,
        case when c.source is null then 0 else 1 end as num_sources,
        0 as num_months,
        0 as num_documents
    from common as c
    inner join known as k on c.model = k.model and c.other_model = k.other_model
    where c.last_month <= k.last_seen
),

judged as (
    select
        * exclude (month_error),
        case when num_blocks >= minimum('blocks of a difference') then month_error end
            as month_error,
        num_blocks - 1 as month_degrees,
        case
            when num_months = 0 then 'no common month after both cutoffs'
            else coalesce(lacking_blocks(num_blocks), lacking_documents(document_error))
        end as reason
    from all_pairs
),

tested as (
    select
        *,
        document_error * t_975(document_degrees) as document_half,
        month_error * t_975(month_degrees) as month_half,
        time_p_value(difference, document_error, document_degrees, month_error, month_degrees)
            as p_value
    from judged
),

stepped as (
    select
        *,
        wider_half(document_half, month_half) as half,
        least(1, p_value * (count(p_value) over family + 1 - row_number() over by_p_value)) as step
    from tested
    window
        family as (partition by protocol, source is null),
        by_p_value as (
            partition by protocol, source is null
            order by p_value nulls last, model, other_model, source
        )
)

select
    s.model,
    s.other_model,
    s.source,
    case when s.source is null then 'all' else 'source' end as scope,
    s.protocol,
    s.difference,
    s.difference - s.half as difference_low,
    s.difference + s.half as difference_high,
    s.p_value,
    case
        when s.p_value is not null
            then
                max(s.step) over (
                    partition by s.protocol, s.source is null
                    order by s.p_value nulls last, s.model, s.other_model, s.source
                )
    end as p_value_adjusted,
    s.difference - s.document_half as difference_low_documents,
    s.difference + s.document_half as difference_high_documents,
    k.basis,
    s.num_sources,
    s.num_months,
    s.num_documents,
    s.reason
from stepped as s
inner join known as k on s.model = k.model and s.other_model = k.other_model;
