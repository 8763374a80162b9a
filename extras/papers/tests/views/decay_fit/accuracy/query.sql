select * replace (round(level, 9) as level, round(rate, 9) as rate)
from papers.decay_fit
where fit = 'linear';
