-- Monthly figures by class of byte, with their side of a split. For byte_class_gap_at and
--   byte_class_ageing.
-- Grain: one row per model, scope, protocol, byte_class, month; scope is a source, or NULL for the
--   mean over sources: those with months on both sides of the split, and their common months; if
--   one has enough months for an interval, only such sources.
-- Parameter: split_on, the first day after the split; NULL splits each model after its own cutoff
--   month, and leaves out models without a cutoff.
-- Units: as byte_class_cells.
-- Source: docs/metrics.md (Losses by class of byte).
create or replace macro internal.byte_class_months_at(split_on) as table
    with cells as materialized (
        select
            c.*,
            coalesce(
                cast(split_on as date),
                cast(m.cutoff + interval 1 month as date)
            ) as split_date,
            case when split_on is null then m.cutoff_provenance else 'analyst' end as split_basis
        from internal.byte_class_cells as c
        left join main.models as m on c.model = m.model
    ),

    sides as (
        select
            model,
            protocol,
            source,
            count(distinct month) filter (where month < split_date) as num_before,
            count(distinct month) filter (where month >= split_date) as num_after,
            lacking_interval(num_before, num_after) is null as has_interval
        from cells
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
        group by c.model, c.protocol, c.month
        having count(distinct c.source) = any_value(n.num_sources)
    ),

    scoped as (
        select
            *,
            source as scope
        from cells
        union all by name
        select
            c.*,
            null as scope
        from cells as c
        semi join two_sided as t
            on c.model = t.model and c.protocol = t.protocol and c.source = t.source
        semi join common_months as m
            on c.model = m.model and c.protocol = m.protocol and c.month = m.month
    )

    select
        model,
        scope,
        protocol,
        byte_class,
        month,
        year(month) * 12 + month(month) as month_number,
        any_value(month >= split_date) as is_after,
        any_value(split_date) as split_date,
        any_value(split_basis) as split_basis,
        avg(bits_of_text) as bits_of_text,
        avg(share_of_bytes) as share_of_bytes
    from scoped
    where split_date is not null
    group by model, scope, protocol, byte_class, month;
