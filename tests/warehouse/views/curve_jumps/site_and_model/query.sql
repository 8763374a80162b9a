select
    curve,
    model,
    month,
    round(jump, 1) as jump,
    error < 0.02 as is_sharp
from internal.curve_jumps
where is_jump and is_peak
