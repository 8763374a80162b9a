-- Level and rank of each model of the board over a window of months.
with levels as (
    select
        model,
        bits_per_byte,
        rank,
        num_sources,
        num_months,
        if(is_over_time, 'months', 'documents') as interval_basis,
        if(is_over_time, bits_per_byte_low, bits_per_byte_low_documents) as bits_per_byte_low,
        if(is_over_time, bits_per_byte_high, bits_per_byte_high_documents) as bits_per_byte_high,
        if(is_over_time, rank_low, rank_low_documents) as rank_low,
        if(is_over_time, rank_high, rank_high_documents) as rank_high
    from (
        select
            *,
            bool_or(rank_low is not null) over () as is_over_time
        from headline_at($first, $last)
    ) as h
)

select
    $span as months,
    model,
    bits_per_byte,
    bits_per_byte_low,
    bits_per_byte_high,
    rank,
    rank_low,
    rank_high,
    if(rank_low = rank_high, cast(rank as varchar), rank_low || '–' || rank_high) as rank_set,
    num_sources,
    num_months,
    interval_basis
from levels
order by rank, model
