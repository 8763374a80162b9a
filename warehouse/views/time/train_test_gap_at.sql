-- Bits per byte before and after a split, and the gap between them.
-- Grain: one row per model, source, protocol.
-- Parameter: split_on, the first day after the split; NULL splits each model after its own cutoff
--   month, and leaves out models without a cutoff.
-- Units: bits per byte. *_before, *_after and *_all are unweighted means of the monthly figures;
--   *_weighted are ratios of the months' sums. gap = after - before; NULL if one side is empty.
--   *_low and *_high bound a 95 % interval (Student's t, standard error by cluster bootstrap); NULL
--   if one of the months has a single cluster.
-- Source: Li et al. 2024, Table 3 and Rate24 (expected_next); docs/metrics.md (Time, Intervals).
create or replace macro train_test_gap_at(split_on) as table
    with periods as (
        select
            model,
            source,
            protocol,
            any_value(split_date) as split_date,
            any_value(split_basis) as split_basis,
            count(bits_per_byte) filter (where not is_after) as num_months_before,
            count(bits_per_byte) filter (where is_after) as num_months_after,
            avg(bits_per_byte) as mean_all,
            avg(bits_per_byte) filter (where not is_after) as mean_before,
            avg(bits_per_byte) filter (where is_after) as mean_after,
            sum(nll_nats) / (ln(2) * nullif(sum(num_bytes), 0)) as rate_all,
            sum(nll_nats) filter (where not is_after)
            / (ln(2) * nullif(sum(num_bytes) filter (where not is_after), 0)) as rate_before,
            sum(nll_nats) filter (where is_after)
            / (ln(2) * nullif(sum(num_bytes) filter (where is_after), 0)) as rate_after
        from internal.split_cells_at(split_on)
        group by model, source, protocol
    )

    select
        p.model,
        p.source,
        p.protocol,
        p.split_date,
        p.split_basis,
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
        2 * p.mean_after - p.mean_before + e.next_error as expected_next_high,
        p.rate_all as bits_per_byte_all_weighted,
        p.rate_before as bits_per_byte_before_weighted,
        p.rate_after as bits_per_byte_after_weighted,
        p.rate_after - p.rate_before as bits_per_byte_gap_weighted,
        2 * p.rate_after - p.rate_before as expected_next_weighted
    from periods as p
    left join internal.gap_errors_at(split_on) as e
        on p.model = e.model and p.source = e.scope and p.protocol = e.protocol;
