-- The gap of each model at its own cutoff, over all sources, as the panel tells it; the largest
-- first. It is control_adjusted_gap where its basis is the panel.
-- adjusted_gap: losses after the cutoff less before it, less what models share [bits per byte]
-- adjusted_gap_low: lower end of the 95 % interval over months [bits per byte]
-- adjusted_gap_high: upper end of the 95 % interval over months [bits per byte]
-- gap_q_value: false discovery rate over the models [probability]
select
    model,
    value as adjusted_gap,
    value_low as adjusted_gap_low,
    value_high as adjusted_gap_high,
    q_value as gap_q_value
from panel_tests
where effect = 'gap' and source is null and protocol = $protocol and value_low is not null
order by adjusted_gap desc, model asc
