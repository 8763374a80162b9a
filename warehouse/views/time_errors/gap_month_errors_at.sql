-- Half widths of the 95 % intervals around a split, for other months. For train_test_gap_at.
-- Grain: one row per model, scope, protocol; scope is a source, or NULL for the mean over sources.
-- Parameter: split_on, as in split_cells_at.
-- Units: as split_month_errors_at. Those of own cutoffs are read from own_month_errors.
-- Source: docs/metrics.md (Intervals); ADR 0016.
create or replace macro internal.gap_month_errors_at(split_on) as table
    from internal.own_month_errors
    where split_on is null
    union all
    from internal.split_month_errors_at(split_on)
    where split_on is not null;
