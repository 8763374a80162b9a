-- Trend of the critical level over the size of models.
-- Grain: one row per model, protocol, ood_split, rules. The trend is equal in all rows of a
--   protocol, ood_split, rules and is_control: scripted models have a trend of their own. Order by
--   parameters.
-- Units: slope is in levels per tenfold number of weights (least squares). rank_correlation is
--   Spearman's, with mean ranks for ties. Both are over the num_models models with a known size and
--   a critical level; other models are left out, see reason. trend_reason says why there is no
--   trend.
-- Source: Qi et al. 2024; docs/metrics.md (Puzzles).
create or replace view papers.scylla_size_trend as
with sized as (
    select
        critical.*,
        models.parameters,
        coalesce(models.kind = 'control', false) as is_control,
        case
            when critical.critical_level is null then 'no critical level: ' || critical.status
            when coalesce(models.parameters, 0) <= 0 then 'number of weights not known'
        end as reason,
        log10(case when models.parameters > 0 then models.parameters end) as size
    from main.scylla_critical_complexity as critical
    left join main.models on critical.model = models.model
),

ranked as (
    select
        *,
        rank() over (used order by size) + (count(*) over same_size - 1) / 2 as size_rank,
        rank() over (used order by critical_level) + (count(*) over same_level - 1) / 2
            as level_rank
    from sized
    where reason is null
    window
        used as (partition by protocol, ood_split, rules, is_control),
        same_size as (partition by protocol, ood_split, rules, is_control, size),
        same_level as (partition by protocol, ood_split, rules, is_control, critical_level)
),

trends as (
    select
        protocol,
        ood_split,
        rules,
        is_control,
        count(*) as num_models,
        case
            when count(*) < minimum('models of a line')
                then too_few(count(*), 'model', '', 'models of a line')
            when count(distinct size) = 1 then 'all models are of one size'
            when count(distinct critical_level) = 1 then 'all critical levels are the same'
        end as trend_reason,
        regr_slope(critical_level, size) as slope,
        corr(size_rank, level_rank) as rank_correlation
    from ranked
    group by protocol, ood_split, rules, is_control
)

select
    sized.model,
    sized.protocol,
    sized.ood_split,
    sized.rules,
    sized.is_control,
    sized.parameters,
    sized.critical_level,
    sized.probability,
    sized.reason,
    coalesce(trends.num_models, 0) as num_models,
    case when trends.trend_reason is null then trends.slope end as slope,
    case when trends.trend_reason is null then trends.rank_correlation end as rank_correlation,
    case
        when trends.num_models is null then too_few(0, 'model', '', 'models of a line')
        else trends.trend_reason
    end as trend_reason
from sized
left join trends
    on
        sized.protocol = trends.protocol
        and sized.ood_split = trends.ood_split
        and sized.rules = trends.rules
        and sized.is_control = trends.is_control;
