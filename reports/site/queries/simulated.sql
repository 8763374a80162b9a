-- The sources with simulated text or questions.
select source
from simulated_sources
order by source
