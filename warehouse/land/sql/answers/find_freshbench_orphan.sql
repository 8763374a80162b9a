-- Find the first answer whose question is not in the file of questions, and count such answers.
select
    row_number,
    question,
    count(*) over () as num_rows
from mapped
where num_options is null
order by row_number
limit 1;
