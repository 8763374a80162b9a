-- Digits of numpy.polyfit, each block left out in turn, and of scipy.stats.t; t_975 has 1e-7 of it.
select
    model,
    scope,
    round(error, 7) as error
from slope_blocks;
