-- Difference of every two models on undated corpora, and on their mean.
-- Grain: one row per model, other_model, source, protocol; model comes first in the alphabet.
--   source NULL is the mean over the corpora that all models have measured (num_corpora).
-- Units: bits per character. difference is model less other_model (negative: model is better).
--   *_documents bound the 95 % interval: would other documents like these say the same? p_value is
--   of no difference; p_value_adjusted is Holm's over the pairs of a protocol on one corpus, or on
--   the mean. They are NULL where reason says why.
-- Source: Huang et al. 2024, arXiv 2404.09937; Holm 1979; docs/metrics.md (Pairs).
create or replace view papers.corpus_difference as
with figures as materialized (
    select * from internal.corpus_figures
),

pairs as (
    select
        a.model,
        b.model as other_model,
        a.source,
        a.protocol,
        a.num_corpora,
        a.num_documents,
        a.bits_per_char - b.bits_per_char as difference,
        paired_error(a.deviations, b.deviations) as standard_error,
        least(a.degrees_of_freedom, b.degrees_of_freedom) as degrees_of_freedom,
        case
            when a.fingerprint <> b.fingerprint then 'other documents than the other model'
            when a.deviations is null or b.deviations is null
                then 'all documents are in one cluster'
        end as reason
    from figures as a
    inner join figures as b
        on
            a.source is not distinct from b.source
            and a.protocol = b.protocol
            and a.model < b.model
),

tested as (
    select
        *,
        case when reason is null then standard_error * t_975(degrees_of_freedom) end as half,
        case
            when reason is null and degrees_of_freedom > 1.999
                then difference_p_value(difference, standard_error, degrees_of_freedom)
        end as p_value
    from pairs
),

stepped as (
    select
        *,
        least(1, p_value * (count(p_value) over family + 1 - row_number() over by_p_value)) as step
    from tested
    window
        family as (partition by protocol, source),
        by_p_value as (
            partition by protocol, source order by p_value nulls last, model, other_model
        )
)

select
    model,
    other_model,
    source,
    case when source is null then 'all' else 'source' end as scope,
    protocol,
    difference,
    difference - half as difference_low_documents,
    difference + half as difference_high_documents,
    p_value,
    case
        when p_value is not null
            then
                max(step) over (
                    partition by protocol, source order by p_value nulls last, model, other_model
                )
    end as p_value_adjusted,
    num_corpora,
    num_documents,
    reason
from stepped;
