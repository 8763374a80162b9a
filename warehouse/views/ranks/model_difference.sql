-- Difference of every two models on the documents that both were scored on.
-- Grain: one row per model, other_model, source, protocol; model comes first in the alphabet.
--   source NULL is the mean over the sources of text that both models have (num_sources).
-- Units: bits per byte. difference is model less other_model (negative: model is better), as the
--   unweighted mean over shared months. low and high bound the 95 % interval of this one difference
--   (paired bootstrap over clusters, Student's t). p_value is for no difference. All three are NULL
--   if a month has a single cluster.
-- p_value_adjusted is Holm's: if rows below 5 % count as real differences, the probability of any
--   error in a family is at most 5 %. A family is all rows of a protocol with a source, or all
--   means.
-- In the mean, sources count as independent.
-- Source: Holm 1979; docs/metrics.md (Pairs).
create or replace view model_difference as
with rows_of_sources as materialized (
    select * from internal.source_differences
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
        standard_error,
        degrees_of_freedom
    from rows_of_sources
    union all
    select
        model,
        other_model,
        null as source,
        protocol,
        count(*) as num_sources,
        cast(sum(num_months) as bigint) as num_months,
        cast(sum(num_documents) as bigint) as num_documents,
        avg(difference) as difference,
        case
            when count(standard_error) = count(*)
                then sqrt(sum(power(standard_error, 2))) / count(*)
        end as standard_error,
        coalesce(
            power(sum(power(standard_error, 2)), 2)
            / nullif(sum(power(standard_error, 4) / degrees_of_freedom), 0),
            min(degrees_of_freedom)
        ) as degrees_of_freedom
    from rows_of_sources
    where is_text
    group by model, other_model, protocol
),

tested as (
    select
        *,
        difference_p_value(difference, standard_error, degrees_of_freedom) as p_value
    from rows_and_means
),

stepped as (
    select
        *,
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
    num_sources,
    num_months,
    num_documents,
    difference,
    difference - t_975(degrees_of_freedom) * standard_error as difference_low,
    difference + t_975(degrees_of_freedom) * standard_error as difference_high,
    p_value,
    case
        when p_value is not null
            then
                max(step) over (
                    partition by protocol, source is null
                    order by p_value nulls last, model, other_model, source
                )
    end as p_value_adjusted
from stepped;
