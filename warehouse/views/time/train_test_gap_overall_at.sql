-- Mean over sources of bits per byte before and after a split, and of the gap.
-- Grain: one row per model, protocol; only models that have a source with months on both sides.
-- Parameter: split_on, as in train_test_gap_at.
-- Units: bits per byte: unweighted means over sources of the means over months. Only sources of
--   text with months on both sides count, and only the months that all of them have. num_sources,
--   num_months_before and num_months_after count both. Images and audio are left out. Intervals and
--   p_value are as in train_test_gap_at. q_value is over the models of a protocol.
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
            avg(bits_per_byte) as bits_per_byte_all,
            avg(bits_per_byte) filter (where not is_after) as bits_per_byte_before,
            avg(bits_per_byte) filter (where is_after) as bits_per_byte_after
        from internal.split_cells_at(split_on)
        where is_common
        group by model, protocol
    ),

    figures as (
        select
            p.*,
            p.bits_per_byte_after - p.bits_per_byte_before as bits_per_byte_gap,
            2 * p.bits_per_byte_after - p.bits_per_byte_before as expected_next,
            e.gap_error,
            e.before_error,
            e.after_error,
            e.next_error,
            wider_half(e.gap_error, m.gap_error) as gap_half,
            wider_half(e.before_error, m.before_error) as before_half,
            wider_half(e.after_error, m.after_error) as after_half,
            wider_half(e.next_error, m.next_error) as next_half,
            e.gap_standard_error,
            e.gap_degrees,
            m.gap_standard_error as month_error,
            m.degrees_of_freedom as month_degrees
        from periods as p
        left join internal.gap_errors_at(split_on) as e
            on p.model = e.model and p.protocol = e.protocol and e.scope is null
        left join internal.gap_month_errors_at(split_on) as m
            on p.model = m.model and p.protocol = m.protocol and m.scope is null
    ),

    tested as (
        select
            *,
            time_p_value(
                bits_per_byte_gap, gap_standard_error, gap_degrees, month_error, month_degrees
            ) as p_value
        from figures
    ),

    ranked as (
        select
            *,
            count(p_value) over (partition by protocol) as num_tests,
            row_number() over (
                partition by protocol order by p_value nulls last, model
            ) as position
        from tested
    )

    select
        model,
        protocol,
        bits_per_byte_gap,
        bits_per_byte_gap - gap_half as bits_per_byte_gap_low,
        bits_per_byte_gap + gap_half as bits_per_byte_gap_high,
        p_value,
        false_discovery_rate(p_value, num_tests, position, protocol) as q_value,
        bits_per_byte_gap - gap_error as bits_per_byte_gap_low_documents,
        bits_per_byte_gap + gap_error as bits_per_byte_gap_high_documents,
        bits_per_byte_before,
        bits_per_byte_before - before_half as bits_per_byte_before_low,
        bits_per_byte_before + before_half as bits_per_byte_before_high,
        bits_per_byte_before - before_error as bits_per_byte_before_low_documents,
        bits_per_byte_before + before_error as bits_per_byte_before_high_documents,
        bits_per_byte_after,
        bits_per_byte_after - after_half as bits_per_byte_after_low,
        bits_per_byte_after + after_half as bits_per_byte_after_high,
        bits_per_byte_after - after_error as bits_per_byte_after_low_documents,
        bits_per_byte_after + after_error as bits_per_byte_after_high_documents,
        expected_next,
        expected_next - next_half as expected_next_low,
        expected_next + next_half as expected_next_high,
        expected_next - next_error as expected_next_low_documents,
        expected_next + next_error as expected_next_high_documents,
        num_sources,
        num_months_before,
        num_months_after,
        gap_reason(num_months_before, num_months_after, protocol, 'month', gap_error) as reason,
        bits_per_byte_all,
        split_date,
        split_basis
    from ranked;
