-- The staged rates that differ from the landed ones. A NULL in a row keeps the landed value.
create or replace temp table changed_published_rates as
with wanted as (
    select
        given.model,
        given.source,
        given.month,
        given.compression_rate,
        coalesce(given.num_bytes, landed.num_bytes) as num_bytes,
        coalesce(given.is_text, landed.is_text, true) as is_text,
        coalesce(given.reference, landed.reference) as reference
    from staged_published_rates as given
    left join internal.published_rates as landed
        on
            given.model = landed.model
            and given.source = landed.source
            and given.month = landed.month
)

select *
from wanted
anti join internal.published_rates as landed
    on
        wanted.model = landed.model
        and wanted.source = landed.source
        and wanted.month = landed.month
        and wanted.compression_rate = landed.compression_rate
        and wanted.num_bytes is not distinct from landed.num_bytes
        and wanted.is_text = landed.is_text
        and wanted.reference is not distinct from landed.reference;
