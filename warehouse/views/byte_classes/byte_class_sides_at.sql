-- Figures by class of byte on both sides of a split. For byte_class_gap_at and its errors.
-- Grain: one row per model, scope, protocol, byte_class; scope is a source, or NULL for the mean
--   over sources.
-- Parameter: split_on, as in byte_class_months_at.
-- Units: bits_* and share_* as byte_class_cells, means over the months of a side. level_* =
--   bits_* / share_*, in bits per byte of the class; NULL without such bytes. part is what the
--   change of the level adds to the gap of the whole text, in bits per byte of the whole text:
--   mean share of both sides * change of the level. Of no_text, it is the change of bits_*.
--   total is the sum of part over the classes. Both are NULL if a side has no month.
-- Source: docs/metrics.md (Losses by class of byte).
create or replace macro internal.byte_class_sides_at(split_on) as table
    with sides as (
        select
            model,
            scope,
            protocol,
            byte_class,
            any_value(split_date) as split_date,
            any_value(split_basis) as split_basis,
            count(*) filter (where not is_after) as num_before,
            count(*) filter (where is_after) as num_after,
            avg(bits_of_text) filter (where not is_after) as bits_before,
            avg(bits_of_text) filter (where is_after) as bits_after,
            avg(share_of_bytes) filter (where not is_after) as share_before,
            avg(share_of_bytes) filter (where is_after) as share_after
        from internal.byte_class_months_at(split_on)
        group by model, scope, protocol, byte_class
    ),

    levels as (
        select
            *,
            bits_before / nullif(share_before, 0) as level_before,
            bits_after / nullif(share_after, 0) as level_after
        from sides
    ),

    parts as (
        select
            *,
            case
                when bits_before is null or bits_after is null then null
                when byte_class = 'no_text' then bits_after - bits_before
                -- A class that one side lacks has no change of its level.
                when level_before is null or level_after is null then 0
                else (share_before + share_after) / 2 * (level_after - level_before)
            end as part
        from levels
    )

    select
        *,
        sum(part) over (partition by model, scope, protocol) as total
    from parts
    where bits_before > 0 or bits_after > 0 or share_before > 0 or share_after > 0;
