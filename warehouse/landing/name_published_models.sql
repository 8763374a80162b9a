-- Give every model with published rates a row in its dimension, so that joins lose no rates.
insert or ignore into models (model)
select distinct model
from published_rates;
