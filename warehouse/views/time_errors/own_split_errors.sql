-- Half widths of the 95 % intervals around each model's own cutoff, for other documents of these
--   months. For gap_errors_at.
-- Grain: one row per model, scope, protocol; scope is a source, or NULL for the mean over sources.
-- Units: as split_errors_at.
-- A snapshot keeps these rows: each computation reads all replicates.
-- Source: docs/metrics.md (Intervals); ADR 0016.
create or replace view internal.own_split_errors as
from internal.split_errors_at(cast(null as date));
