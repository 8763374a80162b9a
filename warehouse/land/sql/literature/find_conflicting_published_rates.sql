-- The first staged rate that differs from its landed rate; a NULL in the file is no difference.
select
    given.model,
    given.source,
    strftime(given.month, '%Y-%m') as month,
    given.compression_rate,
    landed.compression_rate as landed_compression_rate,
    given.num_bytes,
    landed.num_bytes as landed_num_bytes,
    given.is_text,
    landed.is_text as landed_is_text,
    given.reference,
    landed.reference as landed_reference
from staged_published_rates as given
inner join internal.published_rates as landed
    on
        given.model = landed.model
        and given.source = landed.source
        and given.month = landed.month
where
    given.compression_rate <> landed.compression_rate
    or given.num_bytes <> landed.num_bytes
    or given.is_text <> landed.is_text
    or given.reference <> landed.reference
order by given.row_number
limit 1;
