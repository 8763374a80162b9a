-- Give every model with published rates a row in its dimension; else joins would drop rates.
insert into models (model)
select distinct rates.model
from internal.published_rates as rates
anti join models as named on rates.model = named.model;
