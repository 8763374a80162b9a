-- All columns of views headline and headline_neighbours.
-- Grain: one row per compared model.
create or replace view internal.headline_details as
from headline_at(cast(null as date), cast(null as date));
