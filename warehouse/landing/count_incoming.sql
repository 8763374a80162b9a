-- How many rows are staged.
select count(*) as num_rows
from incoming;
