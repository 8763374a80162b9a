-- Rank of each model on each source in each month, among all models and among models of its size.
-- Grain: one row per model, source, protocol, month; only where the model has a figure.
-- rank 1 is the lowest bits per byte; equal models share their best rank. rank_in_class is among
--   models of the same size_class; NULL if the size is unknown. rank_change: rank less rank in the
--   month before, among the models of both months; positive if the model fell back.
-- rank_low and rank_high bound a 95 % interval for other documents of this month: from
--   1 + (significantly better models) to all - (significantly worse models). Significant:
--   one-sided p-value of the paired difference (bootstrap over clusters, Student's t) <= 5 % /
--   (number of other models). Quantiles of replicates' ranks would miss near ties too often. NULL
--   if the month has a single cluster.
--   Two models with different documents are compared on the documents that both measured.
-- has_same_documents: True if all models ranked there measured the same documents; NULL for
--   published rates.
-- Source: Uncheatable Eval; Mogstad, Romano, Shaikh and Wilhelm 2024, "Inference for Ranks";
--   docs/metrics.md (Ranks, Intervals).
create or replace view monthly_rank as
with figures as (
    select
        l.model,
        l.source,
        l.protocol,
        l.month,
        l.bits_per_byte,
        l.standard_error is not null as has_interval,
        l.is_published,
        size_class(m.parameters) as size_class,
        count(*) over (partition by l.source, l.protocol, l.month) as num_models,
        count(*) over (partition by l.source, l.protocol, l.month, size_class(m.parameters))
            as num_in_class
    from internal.period_loss_details as l
    left join models as m on l.model = m.model
    where l.bits_per_byte is not null
),

sure as (
    select
        f.model,
        f.source,
        f.protocol,
        f.month,
        count(*) filter (where p.has_same_documents) as num_same_documents,
        count(*) filter (where sure_sign(p.p_value, p.difference, f.num_models) = 1)
            as num_better,
        count(*) filter (where sure_sign(p.p_value, p.difference, f.num_models) = -1)
            as num_worse,
        count(*) filter (
            where p.is_same_class and sure_sign(p.p_value, p.difference, f.num_in_class) = 1
        ) as num_better_in_class,
        count(*) filter (
            where p.is_same_class and sure_sign(p.p_value, p.difference, f.num_in_class) = -1
        ) as num_worse_in_class
    from figures as f
    inner join internal.ranked_pairs as p
        on
            f.model = p.model
            and f.source = p.source
            and f.protocol = p.protocol
            and f.month = p.month
    group by f.model, f.source, f.protocol, f.month
)

select
    f.model,
    f.source,
    f.protocol,
    f.month,
    f.bits_per_byte,
    rank() over (partition by f.protocol, f.source, f.month order by f.bits_per_byte) as rank,
    case when f.has_interval then 1 + coalesce(s.num_better, 0) end as rank_low,
    case when f.has_interval then f.num_models - coalesce(s.num_worse, 0) end as rank_high,
    f.num_models,
    f.size_class,
    case
        when f.size_class is not null
            then rank() over (
                partition by f.protocol, f.source, f.month, f.size_class order by f.bits_per_byte
            )
    end as rank_in_class,
    case
        when f.has_interval and f.size_class is not null
            then 1 + coalesce(s.num_better_in_class, 0)
    end as rank_in_class_low,
    case
        when f.has_interval and f.size_class is not null
            then f.num_in_class - coalesce(s.num_worse_in_class, 0)
    end as rank_in_class_high,
    case when f.size_class is not null then f.num_in_class end as num_in_class,
    c.rank - c.rank_before as rank_change,
    case
        when f.num_models = 1 then true
        when not f.is_published then coalesce(s.num_same_documents, 0) = f.num_models - 1
    end as has_same_documents
from figures as f
left join sure as s
    on f.model = s.model and f.source = s.source and f.protocol = s.protocol and f.month = s.month
left join internal.consecutive_ranks_at([]) as c
    on f.model = c.model and f.source = c.source and f.protocol = c.protocol and f.month = c.month;
