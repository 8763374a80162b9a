-- Bootstrap deviations of each cell, for figures over several cells: its own, or borrowed ones.
-- Grain: one row per model, source, protocol, month, replicate; no rows without a pooled error.
-- Units: as replicate_deviations.
-- Source: docs/metrics.md (Intervals).
create or replace view internal.pooled_deviations as
select r.*
from internal.replicate_deviations as r
anti join internal.borrowed_deviations as b
    on
        r.model = b.model
        and r.source = b.source
        and r.protocol = b.protocol
        and r.month = b.month
        and r.replicate = b.replicate
union all
select * from internal.borrowed_deviations;
