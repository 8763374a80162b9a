-- A curve fits points on it exactly; the others are compared with numpy in test_intervals.py.
select
    * exclude (level, rate, residual_variance, leave_one_out_error),
    round(level, 9) as level,
    round(rate, 9) as rate,
    round(residual_variance, 9) as residual_variance,
    round(leave_one_out_error, 9) as leave_one_out_error
from papers.decay_fit
where
    fit = case
        when model in ('power', 'logarithmic') then model
        when model = 'grows' then 'exponential'
        else 'linear'
    end
    or (model = 'zero' and fit = 'exponential');
