-- Mean over sources of bits per byte before and after a split, and of the gap.
-- Grain: one row per model, protocol; only models that have a source with months on both sides.
-- Parameter: split_on, as in train_test_gap_at.
-- Units: bits per byte: unweighted means over sources of the means over months. Only sources of
--   text with months on both sides count, and only the months that all of them have. num_sources,
--   num_months_before and num_months_after count both. Images and audio are left out. Intervals are
--   as in train_test_gap_at.
-- Source: mean over sources as in Uncheatable Eval; docs/metrics.md (Likelihood, Time, Intervals).
create or replace macro train_test_gap_overall_at(split_on) as table
    with periods as (
        select
            model,
            protocol,
            any_value(split_date) as split_date,
            any_value(split_basis) as split_basis,
            count(distinct source) as num_sources,
            count(distinct month) filter (where not is_after) as num_months_before,
            count(distinct month) filter (where is_after) as num_months_after,
            -- All sources have the same months, so this is the mean of the sources' means.
            avg(bits_per_byte) as mean_all,
            avg(bits_per_byte) filter (where not is_after) as mean_before,
            avg(bits_per_byte) filter (where is_after) as mean_after
        from internal.split_cells_at(split_on)
        where is_common
        group by model, protocol
    )

    select
        p.model,
        p.protocol,
        p.split_date,
        p.split_basis,
        p.num_sources,
        p.num_months_before,
        p.num_months_after,
        p.mean_all as bits_per_byte_all,
        p.mean_before as bits_per_byte_before,
        p.mean_after as bits_per_byte_after,
        p.mean_after - p.mean_before as bits_per_byte_gap,
        2 * p.mean_after - p.mean_before as expected_next,
        p.mean_after - p.mean_before - e.gap_error as bits_per_byte_gap_low,
        p.mean_after - p.mean_before + e.gap_error as bits_per_byte_gap_high,
        p.mean_before - e.before_error as bits_per_byte_before_low,
        p.mean_before + e.before_error as bits_per_byte_before_high,
        p.mean_after - e.after_error as bits_per_byte_after_low,
        p.mean_after + e.after_error as bits_per_byte_after_high,
        2 * p.mean_after - p.mean_before - e.next_error as expected_next_low,
        2 * p.mean_after - p.mean_before + e.next_error as expected_next_high
    from periods as p
    left join internal.gap_errors_at(split_on) as e
        on p.model = e.model and p.protocol = e.protocol and e.scope is null;
