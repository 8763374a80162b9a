-- Losses by class of byte before and after a split, and the part of each class in the gap.
-- Grain: one row per model, source, protocol, byte_class; source NULL: mean over sources.
-- Parameter: split_on, the first day after the split; NULL splits each model after its own cutoff
--   month, and leaves out models without a cutoff.
-- Units: bits_per_byte_* are bits per byte of the class, ratios of means over months. part_of_gap
--   and mix_of_gap are in bits per byte of the whole text. part_of_gap is the contribution of the
--   change of the class's level to the gap. mix_of_gap is the contribution of the change of the
--   class's share of the text. Both, summed over the classes, are the gap of train_test_gap_at over
--   the same months. share_of_gap = part_of_gap / sum of part_of_gap over the classes; a fraction,
--   which may be negative or above 1. It is NULL if the interval of that sum holds 0.
-- *_low and *_high bound a 95 % interval over time: would other, similar months give the same
--   figure? Where something is NULL, reason says why.
-- Months that get harder or easier for all models are part of these figures: compare models at one
--   split. Compressors have no losses by class, so no gap is adjusted by them.
-- Source: docs/metrics.md (Losses by class of byte).
create or replace macro byte_class_gap_at(split_on) as table
    select
        s.model,
        s.scope as source,
        case when s.scope is null then 'all' else 'source' end as scope,
        s.protocol,
        s.byte_class,
        case when abs(s.total) > e.total_half then s.part / s.total end as share_of_gap,
        case when abs(s.total) > e.total_half then s.part / s.total - e.share_half end
            as share_of_gap_low,
        case when abs(s.total) > e.total_half then s.part / s.total + e.share_half end
            as share_of_gap_high,
        s.part as part_of_gap,
        s.part - e.part_half as part_of_gap_low,
        s.part + e.part_half as part_of_gap_high,
        s.bits_after - s.bits_before - s.part as mix_of_gap,
        s.level_after - s.level_before as bits_per_byte_gap,
        s.level_after - s.level_before - e.gap_half as bits_per_byte_gap_low,
        s.level_after - s.level_before + e.gap_half as bits_per_byte_gap_high,
        s.level_before as bits_per_byte_before,
        s.level_before - e.before_half as bits_per_byte_before_low,
        s.level_before + e.before_half as bits_per_byte_before_high,
        s.level_after as bits_per_byte_after,
        s.level_after - e.after_half as bits_per_byte_after_low,
        s.level_after + e.after_half as bits_per_byte_after_high,
        s.share_before as share_of_bytes_before,
        s.share_after as share_of_bytes_after,
        s.num_before as num_months_before,
        s.num_after as num_months_after,
        case
            when s.num_before = 0 then 'no month before the cutoff'
            when s.num_after = 0 then 'no month after the cutoff'
            when lacking_interval(s.num_before, s.num_after) is not null
                then lacking_interval(s.num_before, s.num_after)
            when s.level_before is null or s.level_after is null
                then 'no level: no bytes of this class on a side of the cutoff'
            when abs(s.total) <= e.total_half then 'no share: the gap may be 0'
        end as reason,
        s.split_date,
        s.split_basis
    from internal.byte_class_sides_at(split_on) as s
    left join internal.byte_class_errors_at(split_on) as e
        on
            s.model = e.model
            and s.scope is not distinct from e.scope
            and s.protocol = e.protocol
            and s.byte_class = e.byte_class;
