-- What is known of the sources.
select *
from sources
