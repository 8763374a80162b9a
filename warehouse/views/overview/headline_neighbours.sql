-- Each ranked model of headline against the next one, on the same cells.
-- Grain: one row per ranked model but the last.
-- next_*: as in headline_at.
-- Source: docs/metrics.md (Headline, New text).
create or replace view headline_neighbours as
select
    model,
    rank,
    next_model,
    next_difference,
    next_difference_low,
    next_difference_high,
    next_p_value_adjusted,
    num_months,
    basis,
    next_reason as reason
from internal.headline_details
where next_model is not null;
