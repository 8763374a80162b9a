-- The landed models of which nothing but the name is known.
select model
from models
where kind is null
order by model;
