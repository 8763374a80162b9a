-- Each model of the board against the next one.
-- other: the next model on the board
-- rank: rank of the first of the two on the board [rank]
with levels as (
    select
        model,
        source,
        avg(bits_per_byte) as bits_per_byte
    from internal.compared_cells
    group by model, source
),

ranks as (
    select
        model,
        rank() over (order by avg(bits_per_byte)) as rank
    from levels
    group by model
),

board as (
    select
        model,
        lead(model) over (order by rank, model) as other,
        rank
    from ranks
),

pairs as (
    select
        *,
        -- The view has each pair once, in the order of the names.
        b.model = d.model as is_same_order
    from board as b
    inner join model_difference as d
        on least(b.model, b.other) = d.model and greatest(b.model, b.other) = d.other_model
    where d.protocol = $protocol and d.source is null
)

select
    rank,
    model,
    other,
    if(is_same_order, 1, -1) * difference as difference,
    if(is_same_order, difference_low, -difference_high) as difference_low,
    if(is_same_order, difference_high, -difference_low) as difference_high,
    p_value_adjusted,
    num_documents,
    num_months
from pairs
order by rank, model
