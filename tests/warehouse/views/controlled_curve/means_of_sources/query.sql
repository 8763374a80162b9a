-- The mean has the months of both a and b; c has too few; the control lacks a month of b.
from internal.controlled_curve
where model = 'm';
