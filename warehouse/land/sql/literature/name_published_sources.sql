-- Give every source with published rates a row in its dimension; else joins would drop rates.
insert into sources (source)
select distinct rates.source
from internal.published_rates as rates
anti join sources as named on rates.source = named.source;
