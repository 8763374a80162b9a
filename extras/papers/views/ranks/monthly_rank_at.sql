-- Rank of each model in each month by the mean over sources, without the given sources.
-- Grain: one row per model, protocol, month.
-- Parameter: left_out, a list of sources that do not count (Uncheatable Eval leaves out Wikipedia);
--   [] leaves out none.
-- All models are compared over the same cells. A month's mean is over the sources (num_sources)
--   that all ranked models have in that month. Months without such a source have no row; models
--   with too few cells are not ranked (comparable_cells_at). Images, audio and compressors are left
--   out.
-- Units: bits per byte, the unweighted mean over sources. Ranks and intervals are as in
--   monthly_rank, which ranks within one source. rank_in_class is among ranked models of a
--   size_class. rank_change is NULL if the month before has other sources.
-- reason: why there is no interval, or no rank in a class.
-- Source: Uncheatable Eval, rankings over time; docs/metrics.md (Ranks, Intervals).
create or replace macro papers.monthly_rank_at(left_out) as table
    with figures as (
        select
            c.protocol,
            c.model,
            c.month,
            any_value(size_class(m.parameters)) as size_class,
            avg(c.bits_per_byte) as bits_per_byte,
            count(*) as num_sources,
            count(c.standard_error) = count(*) as has_interval
        from internal.comparable_cells_at(left_out) as c
        left join main.models as m on c.model = m.model
        group by c.protocol, c.model, c.month
    ),

    counted as (
        select
            *,
            count(*) over (partition by protocol, month) as num_models,
            count(*) over (partition by protocol, month, size_class) as num_in_class
        from figures
    ),

    sure as (
        select
            f.protocol,
            f.model,
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
        from counted as f
        inner join internal.mean_rank_pairs_at(left_out) as p
            on f.protocol = p.protocol and f.model = p.model and f.month = p.month
        group by f.protocol, f.model, f.month
    )

    select
        f.model,
        f.protocol,
        f.month,
        f.num_sources,
        f.bits_per_byte,
        rank() over (partition by f.protocol, f.month order by f.bits_per_byte) as rank,
        case when f.has_interval then 1 + coalesce(s.num_better, 0) end as rank_low,
        case when f.has_interval then f.num_models - coalesce(s.num_worse, 0) end as rank_high,
        f.num_models,
        f.size_class,
        case
            when f.size_class is not null
                then rank() over (
                    partition by f.protocol, f.month, f.size_class order by f.bits_per_byte
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
            when not f.has_interval then lacking_documents(null)
            when f.size_class is null then 'no rank in a class: number of parameters unknown'
        end as reason
    from counted as f
    left join sure as s on f.protocol = s.protocol and f.model = s.model and f.month = s.month
    left join internal.consecutive_ranks_at(left_out) as c
        on
            f.protocol = c.protocol
            and f.model = c.model
            and f.month = c.month
            and c.source is null;
