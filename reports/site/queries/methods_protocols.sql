-- How text is cut into windows and scored.
select
    protocol,
    description
from protocols
order by protocol
