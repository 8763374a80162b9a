-- A curve fits points on it exactly; the others are compared with numpy in test_statistics.py.
select *
from decay_fit
where
    fit = case
        when model in ('power', 'logarithmic') then model
        when model = 'grows' then 'exponential'
        else 'linear'
    end
    or (model = 'zero' and fit = 'exponential');
