-- Bits per byte before and after a split, and the gap, as the mean over sources.
-- Grain: one row per model, protocol.
-- Parameter: split_on, as in train_test_gap_at.
-- Units: bits per byte: the unweighted mean over sources of the unweighted means over months. Only
--   sources with months on both sides count, over the months that all of these have; num_sources
--   and num_months_* say what is left. Images and audio are left out. *_low and *_high bound a 95 %
--   interval (percentiles of 200 cluster bootstrap replicates), NULL where a month of a source
--   is of a single cluster.
-- Source: mean over sources as in Uncheatable Eval; metrics.md, sections 1, 2 and 5.
-- Reads replicate_monthly_loss, models.
create or replace macro train_test_gap_overall_at(split_on) as table
    with figures as (
        select
            r.model,
            r.source,
            r.protocol,
            r.month,
            r.replicate,
            r.bits_per_byte,
            coalesce(
                cast(split_on as date),
                cast(m.cutoff + interval 1 month as date)
            ) as split_date,
            case when split_on is null then m.cutoff_provenance else 'analyst' end as split_basis
        from replicate_monthly_loss as r
        left join models as m on r.model = m.model
        where r.is_text
    ),

    two_sided as (
        select
            model,
            protocol,
            source
        from figures
        where replicate = 0
        group by model, protocol, source
        having bool_or(month < split_date) and bool_or(month >= split_date)
    ),

    num_two_sided as (
        select
            model,
            protocol,
            count(*) as num_sources
        from two_sided
        group by model, protocol
    ),

    common_months as (
        select
            f.model,
            f.protocol,
            f.month
        from figures as f
        semi join two_sided as t
            on f.model = t.model and f.protocol = t.protocol and f.source = t.source
        inner join num_two_sided as n on f.model = n.model and f.protocol = n.protocol
        where f.replicate = 0
        group by f.model, f.protocol, f.month
        having count(*) = any_value(n.num_sources)
    ),

    source_periods as (
        select
            f.model,
            f.protocol,
            f.source,
            f.replicate,
            f.split_date,
            f.split_basis,
            count(*) as num_cells,
            count(f.bits_per_byte) filter (where f.month < f.split_date) as num_months_before,
            count(f.bits_per_byte) filter (where f.month >= f.split_date) as num_months_after,
            avg(f.bits_per_byte) as mean_all,
            avg(f.bits_per_byte) filter (where f.month < f.split_date) as mean_before,
            avg(f.bits_per_byte) filter (where f.month >= f.split_date) as mean_after
        from figures as f
        semi join two_sided as t
            on f.model = t.model and f.protocol = t.protocol and f.source = t.source
        semi join common_months as c
            on f.model = c.model and f.protocol = c.protocol and f.month = c.month
        group by f.model, f.protocol, f.source, f.replicate, f.split_date, f.split_basis
    ),

    periods as (
        select
            model,
            protocol,
            replicate,
            split_date,
            split_basis,
            count(*) as num_sources,
            sum(num_cells) as num_cells,
            max(num_months_before) as num_months_before,
            max(num_months_after) as num_months_after,
            avg(mean_all) as mean_all,
            avg(mean_before) as mean_before,
            avg(mean_after) as mean_after
        from source_periods
        group by model, protocol, replicate, split_date, split_basis
    ),

    intervals as (
        select
            r.model,
            r.protocol,
            quantile_cont(r.mean_after - r.mean_before, 0.025) as gap_low,
            quantile_cont(r.mean_after - r.mean_before, 0.975) as gap_high
        from periods as r
        inner join periods as f
            on
                r.model = f.model
                and r.protocol = f.protocol
                and r.num_cells = f.num_cells
                and f.replicate = 0
        where r.replicate > 0
        group by r.model, r.protocol
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
        i.gap_low as bits_per_byte_gap_low,
        i.gap_high as bits_per_byte_gap_high
    from periods as p
    left join intervals as i on p.model = i.model and p.protocol = i.protocol
    where p.replicate = 0;
