-- The sources with documents or questions that tidemark's simulator has made up.
-- Grain: one row per source. Sources of real sites only have none, so a warehouse of measurements
--   has no row.
-- Units: counts. Figures over such a source are of simulated text, as far as num_simulated goes.
-- Source: the licence of the items, which a crawl sets by what the site says of itself.
create or replace view simulated_sources as
with items as (
    select
        source,
        licence
    from documents
    union all
    select
        source,
        licence
    from forecast_questions
)

select
    source,
    count(*) filter (licence = 'LicenseRef-tidemark-simulator') as num_simulated,
    count(*) as num_items
from items
group by source
having count(*) filter (licence = 'LicenseRef-tidemark-simulator') > 0;
