-- Give every model with likelihoods a row in its dimension; else joins would drop the model.
insert into models (model)
select distinct measured.model
from internal.scylla_likelihoods as measured
anti join models as named on measured.model = named.model;
