-- All columns of views headline_shown and headline_neighbours.
-- Grain: one row per compared model.
create or replace view internal.headline_shown_details as
from headline_shown_at(cast(null as date), cast(null as date), 'new');
