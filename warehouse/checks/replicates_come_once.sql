-- Duplicate bootstrap replicates of a cell, or replicates with a number outside 1 to 200: intervals
-- would be too narrow.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.

-- Each number sets a bit of one of four words: this takes a third of the time of count(distinct).
with bits as (
    select
        model,
        source,
        month,
        protocol,
        replicate,
        cast(1 as bigint) << (abs(replicate) % 62) as mark
    from internal.cell_replicates
),

words as (
    select
        model,
        source,
        month,
        protocol,
        count(*) as num_replicates,
        min(replicate) as least,
        max(replicate) as largest,
        coalesce(bit_or(mark) filter (where replicate // 62 = 0), 0) as word_0,
        coalesce(bit_or(mark) filter (where replicate // 62 = 1), 0) as word_1,
        coalesce(bit_or(mark) filter (where replicate // 62 = 2), 0) as word_2,
        coalesce(bit_or(mark) filter (where replicate // 62 = 3), 0) as word_3
    from bits
    group by model, source, month, protocol
)

select
    model,
    source,
    month,
    protocol,
    num_replicates,
    least,
    largest
from words
where
    least < 1
    or largest > 200
    or num_replicates <> list_sum([
        bit_count(word_0), bit_count(word_1), bit_count(word_2), bit_count(word_3)
    ])
order by model, source, month, protocol;
