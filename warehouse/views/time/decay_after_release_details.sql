-- Every column of decay_after_release. Units and NULLs: see that view.
-- Grain: one row per model, source, protocol; only models with a release date in the catalogue.
create or replace view internal.decay_after_release_details as
with means as (
    select
        model,
        source,
        protocol,
        any_value(released) as released,
        avg(bits_per_byte) filter (where horizon = 0) as base,
        avg(bits_per_byte) filter (where horizon = 3) as mean_3,
        avg(bits_per_byte) filter (where horizon = 6) as mean_6,
        avg(bits_per_byte) filter (where horizon = 9) as mean_9,
        avg(bits_per_byte) filter (where horizon = 12) as mean_12
    from internal.decay_cells
    group by model, source, protocol
),

decays as (
    select
        model,
        source,
        protocol,
        released,
        base as base_bits_per_byte,
        100 * (mean_3 / nullif(base, 0) - 1) as decay_3_pct,
        100 * (mean_6 / nullif(base, 0) - 1) as decay_6_pct,
        100 * (mean_9 / nullif(base, 0) - 1) as decay_9_pct,
        100 * (mean_12 / nullif(base, 0) - 1) as decay_12_pct,
        list_avg([decay_3_pct, decay_6_pct, decay_9_pct, decay_12_pct]) as decay_mean_pct
    from means
)

select
    d.*,
    d.decay_3_pct - e.error_3 as decay_3_pct_low,
    d.decay_3_pct + e.error_3 as decay_3_pct_high,
    d.decay_6_pct - e.error_6 as decay_6_pct_low,
    d.decay_6_pct + e.error_6 as decay_6_pct_high,
    d.decay_9_pct - e.error_9 as decay_9_pct_low,
    d.decay_9_pct + e.error_9 as decay_9_pct_high,
    d.decay_12_pct - e.error_12 as decay_12_pct_low,
    d.decay_12_pct + e.error_12 as decay_12_pct_high,
    d.decay_mean_pct - e.error_mean as decay_mean_pct_low,
    d.decay_mean_pct + e.error_mean as decay_mean_pct_high
from decays as d
left join internal.decay_errors as e
    on d.model = e.model and d.source = e.source and d.protocol = e.protocol;
