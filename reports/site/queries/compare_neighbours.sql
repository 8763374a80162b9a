-- Each model of the board against the next one.
with board as (
    select
        model,
        lead(model) over (order by rank, model) as other,
        rank
    from headline
),

pairs as (
    select
        model,
        other_model as other,
        difference,
        difference_low,
        difference_high,
        p_value_adjusted,
        num_documents,
        num_months
    from model_difference
    where protocol = $protocol and source is null
    union all
    select
        other_model as model,
        model as other,
        -difference as difference,
        -difference_high as difference_low,
        -difference_low as difference_high,
        p_value_adjusted,
        num_documents,
        num_months
    from model_difference
    where protocol = $protocol and source is null
)

select
    b.rank,
    p.*
from board as b
inner join pairs as p on b.model = p.model and b.other = p.other
order by b.rank, p.model
