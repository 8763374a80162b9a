-- What analysts ask first, with the query that answers it.
select
    question,
    view,
    query
from start_here
