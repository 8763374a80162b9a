-- How ranks, and correlations with benchmarks, settle with the number of documents.
-- Grain: one row per protocol, source, is_undated, share, against. against NULL: the ranks
--   themselves, as Spearman's correlation with those of all documents; else Pearson's correlation
--   of the figures with this benchmark.
-- share: size of the corpus as a share of the one that there is (1/64 to 4); num_documents is that
--   many documents. A bootstrap replicate of all documents stands for one of a share of them: its
--   deviation is divided by the root of share, as errors of independent documents are. Shares of
--   fewer than two documents have no row.
-- Units: correlation is the mean over 200 replicates, *_low and *_high their 2.5 and 97.5 %
--   quantiles; same_first is the share of replicates with the same first model. They speak of other
--   documents, not of other models. Only three models and more, and sources without a single
--   cluster; months are those of the most common set (commonest_months).
-- Source: Huang et al. 2024, arXiv 2404.09937 (size of the corpus); docs/metrics.md (Power).
create or replace view papers.corpus_size as
with replicates as materialized (
    select
        c.protocol,
        c.source,
        false as is_undated,
        c.model,
        r.replicate,
        avg(l.bits_per_byte) as figure,
        avg(r.deviation) as deviation,
        sum(l.num_documents) as num_documents
    from internal.commonest_months as c
    inner join internal.replicate_deviations as r
        on c.protocol = r.protocol and c.source = r.source and c.model = r.model
    inner join internal.monthly_loss_details as l
        on
            r.protocol = l.protocol
            and r.source = l.source
            and r.model = l.model
            and r.month = l.month
    group by c.protocol, c.source, c.model, r.replicate
    union all
    select
        protocol,
        source,
        true as is_undated,
        model,
        generate_subscripts(deviations, 1) as replicate,
        bits_per_char as figure,
        unnest(deviations) as deviation,
        num_documents
    from internal.corpus_figures
    where source is not null and deviations is not null
),

shares as (
    select unnest([1 / 64, 1 / 16, 1 / 4, 1, 4]) as share
),

ranked as materialized (
    select
        r.protocol,
        r.source,
        r.is_undated,
        r.model,
        r.replicate,
        s.share,
        s.share * r.num_documents as num_documents,
        r.figure + r.deviation / sqrt(s.share) as value,
        rank() over (cohort order by r.figure) as rank,
        rank() over (cohort order by r.figure + r.deviation / sqrt(s.share)) as rank_there,
        count(*) over (cohort) as num_models
    from replicates as r
    inner join shares as s on s.share * r.num_documents >= 2
    window cohort as (partition by r.protocol, r.source, r.is_undated, r.replicate, s.share)
),

correlations as (
    select
        protocol,
        source,
        is_undated,
        share,
        cast(null as varchar) as against,
        replicate,
        count(*) as num_models,
        max(num_documents) as num_documents,
        corr(rank, rank_there) as correlation,
        bool_or(rank = 1 and rank_there = 1) as is_same_first
    from ranked
    where num_models >= 3
    group by protocol, source, is_undated, share, replicate
    union all
    select
        r.protocol,
        r.source,
        r.is_undated,
        r.share,
        b.benchmark as against,
        r.replicate,
        count(*) as num_models,
        max(r.num_documents) as num_documents,
        corr(r.value, b.score) as correlation,
        null as is_same_first
    from ranked as r
    inner join internal.benchmark_scores as b on r.model = b.model
    group by r.protocol, r.source, r.is_undated, r.share, b.benchmark, r.replicate
    having count(*) >= 3
)

select
    protocol,
    source,
    is_undated,
    share,
    against,
    avg(correlation) filter (where isfinite(correlation)) as correlation,
    quantile_cont(correlation, 0.025) filter (where isfinite(correlation)) as correlation_low,
    quantile_cont(correlation, 0.975) filter (where isfinite(correlation)) as correlation_high,
    avg(case when is_same_first then 1 when not is_same_first then 0 end) as same_first,
    max(num_models) as num_models,
    max(num_documents) as num_documents,
    case
        when count(*) filter (where isfinite(correlation)) > 0 then null
        when against is null then 'all models have the same figure'
        else 'all models have the same figure, or the same score'
    end as reason
from correlations
group by protocol, source, is_undated, share, against;
