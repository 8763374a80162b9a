-- Stage published rates: the file's texts, and their parsed values (NULL if a text is invalid).
-- Input: rows_to_land, Arrow data of texts. Parameters: reference, is_percent.
create or replace temp table staged_published_rates as
select
    row_number,
    nullif(trim(model), '') as model,
    nullif(trim(source), '') as source,
    month as given_month,
    cast(
        date_trunc(
            'month',
            try_cast(
                case
                    when regexp_full_match(trim(month), '\d{4}-\d{2}') then trim(month) || '-01'
                    when regexp_full_match(trim(month), '\d{4}-\d{2}-\d{2}') then trim(month)
                end as date
            )
        ) as date
    ) as month,
    compression_rate as given_rate,
    try_cast(compression_rate as double) / case when $is_percent then 100 else 1 end
        as compression_rate,
    cast($is_percent as boolean) as is_percent,
    num_bytes as given_bytes,
    try_cast(num_bytes as bigint) as num_bytes,
    is_text as given_is_text,
    try_cast(is_text as boolean) as is_text,
    coalesce(nullif(trim(reference), ''), $reference) as reference
from rows_to_land;
