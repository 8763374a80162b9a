-- Bits per byte before and after a split, and the gap between them.
-- Grain: one row per model, source, protocol.
-- Parameter: split_on, the first day that counts as after; NULL splits each model after its own
--   cutoff month, and leaves out models without one.
-- Units: bits per byte. *_before, *_after and *_all are unweighted means of the monthly figures,
--   *_weighted ratios of the periods' sums; gap = after - before; NULL where a side is empty.
--   *_low and *_high bound a 95 % interval (percentiles of 200 cluster bootstrap replicates), NULL
--   where a month of theirs is of a single cluster.
-- Source: Li et al. 2024, Table 3 and Rate24 (expected_next); metrics.md, sections 2 and 5.
-- Reads monthly_loss, replicate_monthly_loss, models.
create or replace macro train_test_gap_at(split_on) as table
    with splits as (
        select
            m.model,
            coalesce(
                cast(split_on as date),
                cast(m.cutoff + interval 1 month as date)
            ) as first_day_after,
            case when split_on is null then m.cutoff_provenance else 'analyst' end as split_basis
        from models as m
    ),

    replicate_periods as (
        select
            r.model,
            r.source,
            r.protocol,
            r.replicate,
            count(*) filter (where r.month < s.first_day_after) as num_before,
            count(*) filter (where r.month >= s.first_day_after) as num_after,
            avg(r.bits_per_byte) as mean_all,
            avg(r.bits_per_byte) filter (where r.month < s.first_day_after) as mean_before,
            avg(r.bits_per_byte) filter (where r.month >= s.first_day_after) as mean_after
        from replicate_monthly_loss as r
        inner join splits as s on r.model = s.model
        where s.first_day_after is not null
        group by r.model, r.source, r.protocol, r.replicate
    ),

    -- A side counts only where replicates have all the months that the figure (replicate 0) has.
    complete_replicates as (
        select
            r.model,
            r.source,
            r.protocol,
            case when r.num_before = f.num_before then r.mean_before end as before,
            case when r.num_after = f.num_after then r.mean_after end as after
        from replicate_periods as r
        inner join replicate_periods as f
            on
                r.model = f.model
                and r.source = f.source
                and r.protocol = f.protocol
                and f.replicate = 0
        where r.replicate > 0
    ),

    intervals as (
        select
            model,
            source,
            protocol,
            quantile_cont(before, 0.025) as before_low,
            quantile_cont(before, 0.975) as before_high,
            quantile_cont(after, 0.025) as after_low,
            quantile_cont(after, 0.975) as after_high,
            quantile_cont(after - before, 0.025) as gap_low,
            quantile_cont(after - before, 0.975) as gap_high
        from complete_replicates
        group by model, source, protocol
    ),

    sums as (
        select
            l.model,
            l.source,
            l.protocol,
            any_value(s.first_day_after) as split_date,
            any_value(s.split_basis) as split_basis,
            count(l.bits_per_byte) filter (where l.month < s.first_day_after) as num_months_before,
            count(l.bits_per_byte) filter (where l.month >= s.first_day_after) as num_months_after,
            sum(l.nll_nats) / ln(2) as bits,
            sum(l.nll_nats) filter (where l.month < s.first_day_after) / ln(2) as bits_before,
            sum(l.nll_nats) filter (where l.month >= s.first_day_after) / ln(2) as bits_after,
            nullif(sum(l.num_bytes), 0) as num_bytes,
            nullif(sum(l.num_bytes) filter (where l.month < s.first_day_after), 0)
                as num_bytes_before,
            nullif(sum(l.num_bytes) filter (where l.month >= s.first_day_after), 0)
                as num_bytes_after
        from monthly_loss as l
        inner join splits as s on l.model = s.model
        where s.first_day_after is not null
        group by l.model, l.source, l.protocol
    )

    select
        s.model,
        s.source,
        s.protocol,
        s.split_date,
        s.split_basis,
        s.num_months_before,
        s.num_months_after,
        p.mean_all as bits_per_byte_all,
        p.mean_before as bits_per_byte_before,
        p.mean_after as bits_per_byte_after,
        p.mean_after - p.mean_before as bits_per_byte_gap,
        2 * p.mean_after - p.mean_before as expected_next,
        i.gap_low as bits_per_byte_gap_low,
        i.gap_high as bits_per_byte_gap_high,
        i.before_low as bits_per_byte_before_low,
        i.before_high as bits_per_byte_before_high,
        i.after_low as bits_per_byte_after_low,
        i.after_high as bits_per_byte_after_high,
        s.bits / s.num_bytes as bits_per_byte_all_weighted,
        s.bits_before / s.num_bytes_before as bits_per_byte_before_weighted,
        s.bits_after / s.num_bytes_after as bits_per_byte_after_weighted,
        s.bits_after / s.num_bytes_after - s.bits_before / s.num_bytes_before
            as bits_per_byte_gap_weighted,
        2 * s.bits_after / s.num_bytes_after - s.bits_before / s.num_bytes_before
            as expected_next_weighted
    from sums as s
    left join replicate_periods as p
        on
            s.model = p.model
            and s.source = p.source
            and s.protocol = p.protocol
            and p.replicate = 0
    left join intervals as i
        on
            s.model = i.model
            and s.source = i.source
            and s.protocol = i.protocol;
