-- The paths of landed files of answers.
select distinct answer_cell
from forecast_answers
where answer_cell is not null;
