-- The fixed mix of each source: the share of each kind of document in all landed months.
-- Grain: one row per source, kind. Undated text is left out.
-- weight: num_bytes over that of the source; the weights of a source sum to 1. They are the same
--   for all models and months, and change when a month lands.
-- Units: weight is a share; num_bytes is UTF-8 text.
-- Source: reads documents; docs/metrics.md (Standardised to a fixed mix).
create or replace view internal.source_mix as
with counts as (
    select
        source,
        kind_of(category, language) as kind,
        cast(sum(num_bytes) as bigint) as num_bytes,
        cast(sum(num_documents) as bigint) as num_documents
    from (
        select
            source,
            category,
            language,
            sum(num_bytes) as num_bytes,
            count(*) as num_documents
        from main.documents
        where month is not null
        group by source, category, language
    ) as grouped
    group by all
)

select
    source,
    kind,
    num_bytes / sum(num_bytes) over (partition by source) as weight,
    num_documents,
    num_bytes
from counts;
