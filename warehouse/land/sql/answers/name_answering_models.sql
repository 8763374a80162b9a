-- Give every model with answers a row in its dimension; else joins would drop answers.
insert into models (model)
select distinct answers.model
from forecast_answers as answers
anti join models as named on answers.model = named.model;
