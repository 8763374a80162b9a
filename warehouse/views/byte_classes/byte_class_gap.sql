-- Where the gap after each model's own cutoff sits: losses by class of byte before and after it.
-- Grain: one row per model, source, protocol, byte_class; source NULL: mean over sources. Only
--   models with a cutoff in the catalogue.
-- Units and columns: as byte_class_gap_at, which has levels, too.
-- *_low and *_high: would other months like these say the same?
-- Source: docs/metrics.md (Losses by class of byte).
create or replace view byte_class_gap as
select
    model,
    source,
    scope,
    protocol,
    byte_class,
    share_of_gap,
    share_of_gap_low,
    share_of_gap_high,
    part_of_gap,
    part_of_gap_low,
    part_of_gap_high,
    mix_of_gap,
    bits_per_byte_gap,
    bits_per_byte_gap_low,
    bits_per_byte_gap_high,
    num_months_after,
    reason
from byte_class_gap_at(cast(null as date));
