-- The last month with training text, and the month from which it thins out, by the model's losses.
-- Grain: one row per model, protocol: of the mean over sources of text.
-- basis: panel (other models tell the difficulty of the months) or compressor (control:zstd does).
--   Months are NULL where reason says why. Intervals are of 95 %; an end that is NULL is open, and
--   is_at_edge is True. q_value: see internal.cutoff_tests.
-- Units: months as first days; jump in bits per byte; difference: estimate less catalogue.
-- Source: docs/metrics.md (Cutoffs); warehouse/estimates/cutoffs.py.
create or replace view estimated_cutoff as
select
    model,
    protocol,
    case when is_found then cutoff end as estimated_cutoff,
    case when is_found then cutoff_low end as estimated_cutoff_low,
    case when is_found then cutoff_high end as estimated_cutoff_high,
    case when is_found then onset end as cutoff_onset,
    case when is_found then onset_low end as cutoff_onset_low,
    case when is_found then onset_high end as cutoff_onset_high,
    case when is_found then cutoff_low is null or cutoff_high is null end as is_at_edge,
    case when is_found then jump end as jump_bits_per_byte,
    p_value,
    q_value,
    catalogue_cutoff,
    case when is_found then date_diff('month', catalogue_cutoff, cutoff) end as difference_months,
    basis,
    reason
from internal.cutoff_tests
where source is null;
