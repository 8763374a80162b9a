-- Rank of each model on undated corpora, and by the mean over corpora.
-- Grain: one row per model, source, protocol; source NULL is the mean over the corpora that all
--   models of the protocol have measured: the headline of undated text.
-- Units: bits per character; rank 1 is the lowest; equal models share their best rank.
--   Compressors are not ranked.
--   *_documents: 95 % intervals for other documents like these, if there is no reason. A rank
--   interval excludes models that are surely better or worse (one-sided 5 %, Bonferroni).
-- Source: Huang et al. 2024, arXiv 2404.09937; docs/metrics.md (Ranks).
create or replace view papers.corpus_rank as
with figures as materialized (
    select
        *,
        count(*) over (partition by source, protocol) as num_models
    from internal.corpus_figures
    where not is_compressor(model)
),

pairs as (
    select
        unnest([model, other_model]) as model,
        source,
        protocol,
        p_value,
        unnest([difference, -difference]) as difference
    from papers.corpus_difference
    where not is_compressor(model) and not is_compressor(other_model)
),

sure as (
    select
        f.model,
        f.source,
        f.protocol,
        count(*) filter (where sure_sign(p.p_value, p.difference, f.num_models) > 0) as num_better,
        count(*) filter (where sure_sign(p.p_value, p.difference, f.num_models) < 0) as num_worse
    from figures as f
    inner join pairs as p
        on
            f.model = p.model
            and f.source is not distinct from p.source
            and f.protocol = p.protocol
    group by f.model, f.source, f.protocol
)

select
    f.model,
    f.source,
    case when f.source is null then 'all' else 'source' end as scope,
    f.protocol,
    f.bits_per_char,
    case
        when f.standard_error is not null
            then greatest(0, f.bits_per_char - f.standard_error * t_975(f.degrees_of_freedom))
    end as bits_per_char_low_documents,
    f.bits_per_char + f.standard_error * t_975(f.degrees_of_freedom)
        as bits_per_char_high_documents,
    rank() over (partition by f.source, f.protocol order by f.bits_per_char) as rank,
    case when f.standard_error is not null then 1 + coalesce(s.num_better, 0) end
        as rank_low_documents,
    case when f.standard_error is not null then f.num_models - coalesce(s.num_worse, 0) end
        as rank_high_documents,
    f.num_models,
    f.num_corpora,
    f.num_documents,
    case
        when f.standard_error is null and f.source is null
            then 'no interval: all documents of a corpus are in one cluster'
        when f.standard_error is null then 'no interval: all documents are in one cluster'
    end as reason
from figures as f
left join sure as s
    on
        f.model = s.model
        and f.source is not distinct from s.source
        and f.protocol = s.protocol;
