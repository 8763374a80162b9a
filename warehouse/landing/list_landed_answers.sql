-- The files of answers that are landed.
select distinct answer_cell
from forecast_answers
where answer_cell is not null;
