-- Give every model with published rates a row in its dimension, so that joins lose no rates.
insert into models (model)
select distinct rates.model
from published_rates as rates
anti join models as named on rates.model = named.model;
