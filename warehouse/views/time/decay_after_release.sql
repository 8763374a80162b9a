-- How much worse (in %) a model does 3, 6, 9 and 12 months after its release.
-- Grain: one row per model, source, protocol; only models whose release the catalogue knows.
-- Units: base_bits_per_byte is the mean of the six months before release; decay_h_pct is
--   100 * (mean of the three months that end h months after release / base - 1). NULL where a
--   month is missing; decay_mean_pct is the mean of those that are there.
-- Source: Zhu et al. (FreshBench), Tables 9, 11, 12; metrics.md, section 2.
-- Reads monthly_loss, models.
create or replace view decay_after_release as
with points as (
    select
        l.model,
        l.source,
        l.protocol,
        m.released,
        l.bits_per_byte,
        date_diff('month', date_trunc('month', m.released), l.month) as months_after
    from monthly_loss as l
    inner join models as m on l.model = m.model
    where m.released is not null and l.bits_per_byte is not null
),

windows as (
    select
        model,
        source,
        protocol,
        released,
        count(*) filter (where months_after between -6 and -1) as num_base,
        avg(bits_per_byte) filter (where months_after between -6 and -1) as mean_base,
        count(*) filter (where months_after between 0 and 2) as num_3,
        avg(bits_per_byte) filter (where months_after between 0 and 2) as mean_3,
        count(*) filter (where months_after between 3 and 5) as num_6,
        avg(bits_per_byte) filter (where months_after between 3 and 5) as mean_6,
        count(*) filter (where months_after between 6 and 8) as num_9,
        avg(bits_per_byte) filter (where months_after between 6 and 8) as mean_9,
        count(*) filter (where months_after between 9 and 11) as num_12,
        avg(bits_per_byte) filter (where months_after between 9 and 11) as mean_12
    from points
    group by model, source, protocol, released
),

complete as (
    select
        model,
        source,
        protocol,
        released,
        case when num_base = 6 then mean_base end as base,
        case when num_3 = 3 then mean_3 end as mean_3,
        case when num_6 = 3 then mean_6 end as mean_6,
        case when num_9 = 3 then mean_9 end as mean_9,
        case when num_12 = 3 then mean_12 end as mean_12
    from windows
),

decays as (
    select
        model,
        source,
        protocol,
        released,
        base as base_bits_per_byte,
        100 * (mean_3 / base - 1) as decay_3_pct,
        100 * (mean_6 / base - 1) as decay_6_pct,
        100 * (mean_9 / base - 1) as decay_9_pct,
        100 * (mean_12 / base - 1) as decay_12_pct
    from complete
)

select
    *,
    list_avg([decay_3_pct, decay_6_pct, decay_9_pct, decay_12_pct]) as decay_mean_pct
from decays;
