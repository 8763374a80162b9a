-- Rise (in %) of a model's bits per byte after its release, by the number of months after it.
-- Grain: one row per model, source, protocol, horizon (3, 6, 9 and 12 months after the release).
-- Units: decay_pct and its interval are those of view decay_after_release, which has their mean.
-- Source: Zhu et al. (FreshBench), Tables 9, 11, 12; docs/metrics.md (Time, Intervals).
create or replace view decay_by_horizon as
with listed as (
    select
        model,
        source,
        protocol,
        released,
        unnest([3, 6, 9, 12]) as horizon,
        unnest([decay_3_pct, decay_6_pct, decay_9_pct, decay_12_pct]) as decay_pct,
        unnest(
            [decay_3_pct_low, decay_6_pct_low, decay_9_pct_low, decay_12_pct_low]
        ) as decay_pct_low,
        unnest(
            [decay_3_pct_high, decay_6_pct_high, decay_9_pct_high, decay_12_pct_high]
        ) as decay_pct_high,
        nullif(reason, lacking_documents(null)) as lack
    from internal.decay_after_release_details
)

select
    model,
    source,
    protocol,
    released,
    horizon,
    decay_pct,
    decay_pct_low,
    decay_pct_high,
    case when decay_pct_low is null then lack end as reason
from listed;
