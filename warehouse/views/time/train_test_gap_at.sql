-- Bits per byte before and after a split, and the gap between them.
-- Grain: one row per model, source, protocol; source NULL, where scope is all, is the mean over
--   sources. It is of models that have a source of text with months on both sides.
-- Parameter: split_on, the first day after the split; NULL splits each model after its own cutoff
--   month, and leaves out models without a cutoff.
-- Units: bits per byte. *_before, *_after and *_all are unweighted means of the monthly figures;
--   *_weighted are ratios of the months' sums. gap = after - before; NULL if one side is empty.
--   *_low and *_high bound a 95 % interval over time: would other months like these give the same
--   figure? *_low_documents and *_high_documents: would other documents of these months? The former
--   is the wider of the latter and of one over months in blocks of three. The former is NULL with
--   fewer than four blocks (3 months of a side). Where something is NULL, reason says why.
-- A month of a single cluster has no error of its own, and gets that of the source's other months;
--   without four of these, the latter is NULL, and the former is of months alone.
-- p_value: of no gap, by the interval over time. q_value: Benjamini-Hochberg's over the models and
--   sources of a protocol; the means over sources are a family of their own.
-- Means over sources are unweighted means of the sources' means. Only sources of text with months
--   on both sides count, and only the months that all of them have. If one has enough months for an
--   interval, sources with fewer are left out. num_sources, num_months_before and num_months_after
--   count both. Images and audio are left out.
-- Months that get harder or easier for all models are part of this gap, and no interval of a single
--   curve can know: see control_adjusted_gap.
-- Source: Li et al. 2024, Table 3 and Rate24 (expected_next); mean over sources as in Uncheatable
--   Eval; docs/metrics.md (Likelihood, Time, Intervals).
create or replace macro train_test_gap_at(split_on) as table
    with cells as (
        select
            *,
            source as text_source
        from internal.split_cells_at(split_on)
        union all by name
        -- All sources have the same months, so the mean over these is the mean of sources' means.
        select
            * replace (null as source),
            source as text_source
        from internal.split_cells_at(split_on)
        where is_common
    ),

    periods as (
        select
            model,
            source,
            protocol,
            any_value(split_date) as split_date,
            any_value(split_basis) as split_basis,
            count(distinct text_source) as num_sources,
            count(distinct month) filter (where not is_after and bits_per_byte is not null)
                as num_months_before,
            count(distinct month) filter (where is_after and bits_per_byte is not null)
                as num_months_after,
            avg(bits_per_byte) as bits_per_byte_all,
            avg(bits_per_byte) filter (where not is_after) as bits_per_byte_before,
            avg(bits_per_byte) filter (where is_after) as bits_per_byte_after,
            sum(nll_nats) / (ln(2) * nullif(sum(num_bytes), 0)) as bits_per_byte_all_weighted,
            sum(nll_nats) filter (where not is_after)
            / (ln(2) * nullif(sum(num_bytes) filter (where not is_after), 0))
                as bits_per_byte_before_weighted,
            sum(nll_nats) filter (where is_after)
            / (ln(2) * nullif(sum(num_bytes) filter (where is_after), 0))
                as bits_per_byte_after_weighted
        from cells
        group by model, source, protocol
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
            on
                p.model = e.model
                and p.source is not distinct from e.scope
                and p.protocol = e.protocol
        left join internal.gap_month_errors_at(split_on) as m
            on
                p.model = m.model
                and p.source is not distinct from m.scope
                and p.protocol = m.protocol
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
            count(p_value) over (partition by protocol, source is null) as num_tests,
            row_number() over (
                partition by protocol, source is null order by p_value nulls last, model, source
            ) as position
        from tested
    )

    select
        model,
        source,
        case when source is null then 'all' else 'source' end as scope,
        protocol,
        bits_per_byte_gap,
        bits_per_byte_gap - gap_half as bits_per_byte_gap_low,
        bits_per_byte_gap + gap_half as bits_per_byte_gap_high,
        p_value,
        false_discovery_rate(p_value, num_tests, position, row(protocol, source is null))
            as q_value,
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
        gap_reason(
            num_months_before, num_months_after, protocol, source_period(source), gap_error
        ) as reason,
        bits_per_byte_all,
        split_date,
        split_basis,
        bits_per_byte_all_weighted,
        bits_per_byte_before_weighted,
        bits_per_byte_after_weighted,
        bits_per_byte_after_weighted - bits_per_byte_before_weighted as bits_per_byte_gap_weighted,
        2 * bits_per_byte_after_weighted - bits_per_byte_before_weighted as expected_next_weighted
    from ranked;
