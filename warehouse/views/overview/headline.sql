-- One figure per model: bits per byte of text under the default protocol, with the rank.
-- Grain: one row per compared model.
-- Units: bits_per_byte is the unweighted mean over sources of the unweighted mean over months. It
--   covers only the (source, month) cells that all compared models have; num_months counts their
--   different months. eligible_cells and compared_cells define which cells and models count.
-- low and high bound 95 % intervals: of the figure by bootstrap over clusters and Student's t; of
--   the rank from 1 + (significantly better models) to all - (significantly worse models), as in
--   monthly_rank. NULL if a cell has a single cluster.
-- Source: docs/metrics.md (Likelihood, Headline, Intervals); the mean over sources is Uncheatable
--   Eval's.
create or replace view headline as
with figures as materialized (
    select * from internal.headline_figures
),

pairs as (
    select
        a.model,
        a.bits_per_byte - b.bits_per_byte as difference,
        paired_error(a.deviations, b.deviations) as standard_error,
        case
            when a.degrees_of_freedom <= b.degrees_of_freedom then a.degrees_of_freedom
            else b.degrees_of_freedom
        end as degrees_of_freedom
    from figures as a
    inner join figures as b on a.model <> b.model
),

-- Bonferroni over the n - 1 other models; a two-sided level of 10 % is one-sided 5 %.
sure as (
    select
        model,
        count(*) filter (where difference > 0) as num_better,
        count(*) filter (where difference < 0) as num_worse
    from pairs
    where
        degrees_of_freedom > 1.999
        and difference_p_value(difference, standard_error, degrees_of_freedom)
        * (select count(*) - 1 from figures) <= 0.1
    group by model
)

select
    f.model,
    f.bits_per_byte,
    f.bits_per_byte / 8 as compression_rate,
    rank() over (order by f.bits_per_byte) as rank,
    f.num_sources,
    max(f.num_months) over () as num_months,
    f.num_unmeasured,
    m.cutoff,
    f.bits_per_byte - t_975(f.degrees_of_freedom) * f.standard_error as bits_per_byte_low,
    f.bits_per_byte + t_975(f.degrees_of_freedom) * f.standard_error as bits_per_byte_high,
    case when f.standard_error is not null then 1 + coalesce(s.num_better, 0) end as rank_low,
    case when f.standard_error is not null then count(*) over () - coalesce(s.num_worse, 0) end
        as rank_high
from figures as f
left join sure as s on f.model = s.model
left join models as m on f.model = m.model;
