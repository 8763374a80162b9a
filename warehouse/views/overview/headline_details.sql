-- All columns of view headline, and each ranked model against the next one (next_*).
-- Grain: one row per compared model.
create or replace view internal.headline_details as
from headline_at(cast(null as date), cast(null as date));
