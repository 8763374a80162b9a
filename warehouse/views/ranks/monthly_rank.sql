-- Rank of each model on each source in each month, among all models and among models of its size.
-- Grain: one row per model, source, protocol, month; only where the model has a figure.
-- Only models to which the month's text is new are ranked (training_ends); basis says which. If
--   nothing is known of any model's training under a protocol, all of its models are ranked.
--   Compressors are never ranked. Ranks of others are NULL.
-- rank 1 is the lowest bits per byte; equal models share their best rank. rank_in_class is among
--   models of the same size_class; NULL if the size is unknown. rank_change: rank less rank in the
--   month before, among the models of both months; positive if the model fell back.
-- rank_low and rank_high bound a 95 % interval for other documents of this month: from
--   1 + (significantly better models) to all - (significantly worse models). Significant:
--   one-sided p-value of the paired difference (bootstrap over clusters, Student's t) <= 5 % /
--   (number of other models). Quantiles of replicates' ranks would miss near ties too often. NULL
--   if the month has a single cluster.
--   Two models with different documents are compared on the documents that both measured.
-- Source: Uncheatable Eval; Mogstad, Romano, Shaikh and Wilhelm 2024, "Inference for Ranks";
--   docs/metrics.md (Ranks, New text, Intervals).
create or replace view monthly_rank as
with judged as (
    select
        l.model,
        l.source,
        l.protocol,
        l.month,
        l.bits_per_byte,
        l.standard_error is not null as has_interval,
        l.is_published,
        l.reason,
        size_class(m.parameters) as size_class,
        case
            when t.known_by = 'compressor' then 'compressor: never trained'
            when l.month > t.last_month then 'after ' || strftime(t.last_month, '%Y-%m')
            when l.month <= t.last_month then 'may have been seen in training'
            else 'cutoff unknown: may have been seen in training'
        end as basis,
        l.month > t.last_month as is_new,
        bool_or(t.last_month is not null) over (partition by l.protocol) as is_known
    from internal.period_loss as l
    left join models as m on l.model = m.model
    left join training_ends as t on l.model = t.model
    where l.bits_per_byte is not null
),

figures as materialized (
    select
        *,
        coalesce(is_new, not is_known and basis not like 'compressor%') as is_ranked,
        count(*) over (partition by source, protocol, month, is_ranked) as num_models,
        count(*) over (partition by source, protocol, month, is_ranked, size_class)
            as num_in_class
    from judged
),

sure as (
    select
        f.model,
        f.source,
        f.protocol,
        f.month,
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
    inner join figures as o
        on
            p.other_model = o.model
            and p.source = o.source
            and p.protocol = o.protocol
            and p.month = o.month
    where f.is_ranked and o.is_ranked
    group by f.model, f.source, f.protocol, f.month
),

-- Ranks in a month and in the one before, among the ranked models that have both.
changes as (
    select
        f.model,
        f.source,
        f.protocol,
        f.month,
        rank() over (of_month order by f.bits_per_byte)
        - rank() over (of_month order by b.bits_per_byte) as rank_change
    from figures as f
    inner join figures as b
        on
            f.model = b.model
            and f.source = b.source
            and f.protocol = b.protocol
            and f.month = period_after(b.source, b.month)
    where f.is_ranked and b.is_ranked
    window of_month as (partition by f.protocol, f.source, f.month)
)

select
    f.model,
    f.source,
    f.protocol,
    f.month,
    f.bits_per_byte,
    case
        when f.is_ranked
            then
                rank() over (
                    partition by f.protocol, f.source, f.month, f.is_ranked
                    order by f.bits_per_byte
                )
    end as rank,
    case when f.is_ranked and f.has_interval then 1 + coalesce(s.num_better, 0) end as rank_low,
    case
        when f.is_ranked and f.has_interval then f.num_models - coalesce(s.num_worse, 0)
    end as rank_high,
    case when f.is_ranked then f.num_models end as num_models,
    f.size_class,
    case
        when f.is_ranked and f.size_class is not null
            then
                rank() over (
                    partition by f.protocol, f.source, f.month, f.is_ranked, f.size_class
                    order by f.bits_per_byte
                )
    end as rank_in_class,
    case
        when f.is_ranked and f.has_interval and f.size_class is not null
            then 1 + coalesce(s.num_better_in_class, 0)
    end as rank_in_class_low,
    case
        when f.is_ranked and f.has_interval and f.size_class is not null
            then f.num_in_class - coalesce(s.num_worse_in_class, 0)
    end as rank_in_class_high,
    case when f.is_ranked and f.size_class is not null then f.num_in_class end as num_in_class,
    c.rank_change,
    f.basis,
    case
        when not f.is_ranked then f.basis
        when f.reason is not null then f.reason
        when f.size_class is null then 'no rank in a class: number of parameters unknown'
    end as reason
from figures as f
left join sure as s
    on f.model = s.model and f.source = s.source and f.protocol = s.protocol and f.month = s.month
left join changes as c
    on f.model = c.model and f.source = c.source and f.protocol = c.protocol and f.month = c.month;
