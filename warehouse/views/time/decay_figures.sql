-- Decays after release with all their intervals. Units and NULLs: see decay_by_horizon.
-- Grain: one row per model, source, protocol; only models with a release date in the catalogue.
create or replace view internal.decay_figures as
with means as (
    select
        model,
        source,
        protocol,
        any_value(released) as released,
        count(*) filter (where is_base) as num_base,
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
        num_base,
        base as base_bits_per_byte,
        100 * (mean_3 / nullif(base, 0) - 1) as decay_3_pct,
        100 * (mean_6 / nullif(base, 0) - 1) as decay_6_pct,
        100 * (mean_9 / nullif(base, 0) - 1) as decay_9_pct,
        100 * (mean_12 / nullif(base, 0) - 1) as decay_12_pct,
        list_avg([decay_3_pct, decay_6_pct, decay_9_pct, decay_12_pct]) as decay_mean_pct,
        list_count([mean_3, mean_6, mean_9, mean_12]) as num_quarters
    from means
),

tested as (
    select
        d.*,
        e.* exclude (model, source, protocol),
        time_p_value(
            d.decay_mean_pct, e.mean_error, e.mean_degrees, e.month_error, e.month_degrees
        ) as p_value
    from decays as d
    left join internal.decay_errors as e
        on d.model = e.model and d.source = e.source and d.protocol = e.protocol
),

ranked as (
    select
        *,
        count(p_value) over (partition by protocol) as num_tests,
        row_number() over (
            partition by protocol order by p_value nulls last, model, source
        ) as position
    from tested
)

select
    model,
    source,
    protocol,
    released,
    decay_mean_pct,
    decay_mean_pct - half_mean as decay_mean_pct_low,
    decay_mean_pct + half_mean as decay_mean_pct_high,
    p_value,
    false_discovery_rate(p_value, num_tests, position, protocol) as q_value,
    decay_mean_pct - error_mean as decay_mean_pct_low_documents,
    decay_mean_pct + error_mean as decay_mean_pct_high_documents,
    decay_3_pct,
    decay_3_pct - half_3 as decay_3_pct_low,
    decay_3_pct + half_3 as decay_3_pct_high,
    decay_3_pct - error_3 as decay_3_pct_low_documents,
    decay_3_pct + error_3 as decay_3_pct_high_documents,
    decay_6_pct,
    decay_6_pct - half_6 as decay_6_pct_low,
    decay_6_pct + half_6 as decay_6_pct_high,
    decay_6_pct - error_6 as decay_6_pct_low_documents,
    decay_6_pct + error_6 as decay_6_pct_high_documents,
    decay_9_pct,
    decay_9_pct - half_9 as decay_9_pct_low,
    decay_9_pct + half_9 as decay_9_pct_high,
    decay_9_pct - error_9 as decay_9_pct_low_documents,
    decay_9_pct + error_9 as decay_9_pct_high_documents,
    decay_12_pct,
    decay_12_pct - half_12 as decay_12_pct_low,
    decay_12_pct + half_12 as decay_12_pct_high,
    decay_12_pct - error_12 as decay_12_pct_low_documents,
    decay_12_pct + error_12 as decay_12_pct_high_documents,
    base_bits_per_byte,
    coalesce(
        decay_reason(num_base, num_quarters, protocol),
        'incomplete or ahead: '
        || nullif(
            array_to_string(
                list_filter(
                    [
                        case when decay_3_pct is null then 'months 0 to 2' end,
                        case when decay_6_pct is null then 'months 3 to 5' end,
                        case when decay_9_pct is null then 'months 6 to 8' end,
                        case when decay_12_pct is null then 'months 9 to 11' end
                    ],
                    lambda quarter: quarter is not null
                ),
                ', '
            ),
            ''
        )
        || ' after the release',
        lacking_documents(error_mean)
    ) as reason
from ranked;
