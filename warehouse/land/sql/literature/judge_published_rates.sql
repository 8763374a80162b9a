-- The problem of each staged rate, NULL if the rate is valid. find_problem reads the first.
-- A fraction above 3 is refused: the largest published fraction (a text model on audio) is 2.1, the
-- smallest percentage 3.5. So confusing fractions with percentages is detected in both directions.
create or replace temp table judged_rows as
with checked as (
    select
        *,
        min(row_number) over (partition by model, source, month) as first_row_number,
        max(compression_rate) over () as max_rate
    from staged_published_rates
)

select
    row_number,
    case
        when model is null then ['model', null, 'the name of a model']
        when source is null then ['source', null, 'the name of a source']
        when month is null or year(month) not between 1 and 9999
            then ['month', given_month, 'YYYY-MM or YYYY-MM-DD, such as 2024-03']
        when
            compression_rate is null
            or not isfinite(compression_rate)
            or compression_rate < 1e-9
            then ['compression_rate', given_rate, 'a number above 0, without a percent sign']
        when is_percent and compression_rate > 3
            then ['compression_rate', given_rate, 'a percentage of at most 300']
        when is_percent and max_rate <= 0.03
            then [
                'compression_rate',
                given_rate,
                'a percentage such as 7.8, as --percent says. No rate of the file is above 3: '
                || 'if they are fractions, leave --percent out'
            ]
        when compression_rate > 3
            then [
                'compression_rate',
                given_rate,
                'compressed size / raw size as a fraction such as 0.078, at most 3. If the '
                || 'file holds percentages, say --percent'
            ]
        when given_bytes is not null and coalesce(num_bytes, 0) <= 0
            then ['num_bytes', given_bytes, 'a whole number above 0, or nothing']
        when given_is_text is not null and is_text is null
            then ['is_text', given_is_text, 'true, false, or nothing for true']
        when row_number > first_row_number
            then [
                'model, source, month',
                concat_ws(', ', model, source, strftime(month, '%Y-%m')),
                'one row for each; row ' || first_row_number || ' is of the same'
            ]
    end as problem
from checked;
