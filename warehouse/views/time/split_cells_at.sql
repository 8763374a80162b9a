-- Monthly figures of each model, with their side of a split. For train_test_gap_at.
-- Grain: one row per model, source, protocol, month; models without a split date are left out.
-- Parameter: split_on, the first day after the split; NULL splits each model after its own cutoff
--   month.
-- Units: as monthly_loss; errors as pooled_errors. spread is (standard error)^4 / degrees of
--   freedom, for Satterthwaite's formula.
-- Half-months and weeks are after the split if they begin after it.
-- is_common: the month counts in means over sources. Its source is text with months on both sides,
--   and all such sources have the month. If one has enough months for an interval, only such
--   sources count: one that began late does not take the common months away.
-- Source: docs/metrics.md (Likelihood, Time).
create or replace macro internal.split_cells_at(split_on) as table
    with cells as (
        select
            l.* exclude (standard_error, degrees_of_freedom),
            e.standard_error,
            e.degrees_of_freedom,
            coalesce(
                cast(split_on as date),
                cast(m.cutoff + interval 1 month as date)
            ) as split_date,
            case when split_on is null then m.cutoff_provenance else 'analyst' end as split_basis
        from internal.period_loss as l
        left join main.models as m on l.model = m.model
        left join internal.pooled_errors as e
            on
                l.model = e.model
                and l.source = e.source
                and l.protocol = e.protocol
                and l.month = e.month
    ),

    sides as (
        select
            model,
            protocol,
            source,
            count(*) filter (where month < split_date) as num_before,
            count(*) filter (where month >= split_date) as num_after,
            lacking_interval(num_before, num_after) is null as has_interval
        from cells
        where is_text and bits_per_byte is not null and source_period(source) = 'month'
        group by model, protocol, source
        having least(num_before, num_after) > 0
    ),

    two_sided as (
        select
            model,
            protocol,
            source
        from sides
        qualify has_interval or not bool_or(has_interval) over (partition by model, protocol)
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
            c.model,
            c.protocol,
            c.month
        from cells as c
        semi join two_sided as t
            on c.model = t.model and c.protocol = t.protocol and c.source = t.source
        inner join num_two_sided as n on c.model = n.model and c.protocol = n.protocol
        where c.bits_per_byte is not null
        group by c.model, c.protocol, c.month
        having count(*) = any_value(n.num_sources)
    )

    select
        c.model,
        c.source,
        c.protocol,
        c.month,
        c.split_date,
        c.split_basis,
        c.month >= c.split_date as is_after,
        t.source is not null and m.month is not null as is_common,
        c.nll_nats,
        c.num_bytes,
        c.bits_per_byte,
        c.standard_error,
        power(c.standard_error, 4) / c.degrees_of_freedom as spread
    from cells as c
    left join two_sided as t
        on c.model = t.model and c.protocol = t.protocol and c.source = t.source
    left join common_months as m
        on c.model = m.model and c.protocol = m.protocol and c.month = m.month
    where c.split_date is not null;
