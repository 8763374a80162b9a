-- Names of models, sources and protocols: each name in the facts has a row in its dimension.
-- In: chunk_losses and what else names a model. Out: models, sources and protocols lack no name.

---------- Add missing names

-- name: name_models
-- Give every landed model a row in its dimension; else joins would drop losses.
insert into models (model)
select distinct landed.model
from internal.landed_cells as landed
anti join models as named on landed.model = named.model;

-- name: name_sources
-- Give every landed source a row in its dimension; else joins would drop losses.
insert into sources (source)
select distinct landed.source
from internal.landed_cells as landed
anti join sources as named on landed.source = named.source;

-- name: name_protocols
-- Give every landed protocol a row in its dimension; else joins would drop losses.
insert into protocols (protocol)
select distinct landed.protocol
from internal.landed_cells as landed
anti join protocols as named on landed.protocol = named.protocol;

---------- Read

-- name: find_landed_models
-- The models that the warehouse names, each with one of its revisions.
select
    m.model,
    coalesce(max(c.revision), any_value(m.revision)) as revision
from models as m
left join internal.landed_cells as c on m.model = c.model
group by m.model
order by m.model;
