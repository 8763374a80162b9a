-- Give every source with published rates a row in its dimension, so that joins lose no rates.
insert into sources (source)
select distinct rates.source
from published_rates as rates
anti join sources as named on rates.source = named.source;
