-- Digits of numpy.polyfit, each block left out in turn, and of scipy.stats.t.
select
    model,
    scope,
    round(error, 7) as error
from internal.slope_blocks;
