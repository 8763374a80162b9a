-- Correlation between the models' ranks in consecutive months.
-- Grain: one row per protocol, source, month (compared with the month before); source NULL is the
--   mean over sources of text (comparable_cells_at has its models and cells).
-- Units: num_models are the models of both months; only they enter the correlations. spearman is
--   Pearson's correlation of ranks, with mean ranks for ties; kendall is tau-b. Both are NULL below
--   3 models, or if all models of a month are equal.
-- Source: Uncheatable Eval (rankings are stable from month to month); docs/metrics.md (Ranks).
create or replace view papers.rank_stability as
with models as materialized (
    select
        protocol,
        source,
        month,
        model,
        bits_per_byte,
        bits_per_byte_before,
        rank + (count(*) over same_now - 1) / 2 as mean_rank,
        rank_before + (count(*) over same_before - 1) / 2 as mean_rank_before
    from internal.consecutive_ranks_at([])
    window
        same_now as (partition by protocol, source, month, bits_per_byte),
        same_before as (partition by protocol, source, month, bits_per_byte_before)
),

pairs as (
    select
        a.protocol,
        a.source,
        a.month,
        sign(a.bits_per_byte - b.bits_per_byte) as sign_now,
        sign(a.bits_per_byte_before - b.bits_per_byte_before) as sign_before
    from models as a
    inner join models as b
        on
            a.protocol = b.protocol
            and a.source is not distinct from b.source
            and a.month = b.month
            and a.model < b.model
),

kendall as (
    select
        protocol,
        source,
        month,
        sum(sign_now * sign_before)
        / nullif(sqrt(sum(abs(sign_now)) * sum(abs(sign_before))), 0) as tau
    from pairs
    group by protocol, source, month
),

spearman as (
    select
        protocol,
        source,
        month,
        count(*) as num_models,
        case
            when stddev_pop(mean_rank) > 0 and stddev_pop(mean_rank_before) > 0
                then greatest(-1, least(1, corr(mean_rank, mean_rank_before)))
        end as rho
    from models
    group by protocol, source, month
)

select
    s.protocol,
    s.source,
    case when s.source is null then 'all' else 'source' end as scope,
    s.month,
    s.num_models,
    case when s.num_models >= 3 then s.rho end as spearman,
    case when s.num_models >= 3 then k.tau end as kendall
from spearman as s
left join kendall as k
    on
        s.protocol = k.protocol
        and s.source is not distinct from k.source
        and s.month = k.month;
