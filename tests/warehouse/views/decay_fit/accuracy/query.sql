select * replace (round(level, 9) as level, round(rate, 9) as rate)
from decay_fit
where fit = 'linear';
