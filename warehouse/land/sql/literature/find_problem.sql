-- The first judged row with a problem: row number, column, content and expected content.
-- Input: judged_rows; its column problem has the column, its content and the expected content.
select
    row_number,
    problem[1] as column_name,
    left(problem[2], 100) as given,
    problem[3] as expected
from judged_rows
where problem is not null
order by row_number
limit 1;
