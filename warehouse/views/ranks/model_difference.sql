-- Difference of every two models on the documents that both were scored on.
-- Grain: one row per model, other_model, source, protocol; model comes first in the alphabet.
--   source NULL is the mean over the sources of text that both models have (num_sources).
-- Units: bits per byte. difference is model less other_model (negative: model is better), as the
--   unweighted mean over shared months. *_low and *_high bound the 95 % interval of this one
--   difference over time: would other months like these say the same? *_documents: would other
--   documents of these months? The former is the wider of the latter and of a jackknife over blocks
--   of three calendar months. It is NULL where reason says why.
-- p_value is of no difference, by the interval over time. p_value_adjusted is Holm's: if rows below
--   5 % count as real differences, the probability of any error in a family is at most 5 %. A
--   family is all rows of a protocol with a source, or all means.
-- In the mean, documents of sources count as independent; a block of months is left out of all
--   sources at once.
-- Source: Holm 1979; docs/metrics.md (Pairs, Intervals).
create or replace view model_difference as
with rows_of_sources as materialized (
    select * from internal.source_differences
),

changes_of_sources as (
    select
        model,
        other_model,
        protocol,
        unnest(blocks) as block
    from rows_of_sources
    where is_text
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
    where is_text
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

judged as (
    select
        * exclude (month_error),
        case when num_blocks >= 4 then month_error end as month_error,
        num_blocks - 1 as month_degrees,
        case
            when num_blocks < 4 then 'fewer than four blocks of three months'
            when document_error is null then 'a month has a single cluster'
        end as reason
    from rows_and_means
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
    model,
    other_model,
    source,
    protocol,
    difference,
    difference - half as difference_low,
    difference + half as difference_high,
    p_value,
    case
        when p_value is not null
            then
                max(step) over (
                    partition by protocol, source is null
                    order by p_value nulls last, model, other_model, source
                )
    end as p_value_adjusted,
    difference - document_half as difference_low_documents,
    difference + document_half as difference_high_documents,
    num_sources,
    num_months,
    num_documents,
    reason
from stepped;
