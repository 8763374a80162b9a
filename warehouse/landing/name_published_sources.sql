-- Give every source with published rates a row in its dimension, so that joins lose no rates.
insert or ignore into sources (source)
select distinct source
from published_rates;
