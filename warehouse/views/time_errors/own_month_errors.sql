-- Half widths of the 95 % intervals around each model's own cutoff, for other months. For
--   gap_month_errors_at.
-- Grain: one row per model, scope, protocol; scope is a source, or NULL for the mean over sources.
-- Units: as split_month_errors_at.
-- A snapshot keeps these rows: to compute them takes most of the time of train_test_gap.
-- Source: docs/metrics.md (Intervals); ADR 0016.
create or replace view internal.own_month_errors as
from internal.split_month_errors_at(cast(null as date));
