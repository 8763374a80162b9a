-- What is known of each model with a figure of any instrument; places 2 and 3 have no losses here.
with measured as (
    select
        model,
        1 as place
    from monthly_loss
    where protocol = $protocol and bits_per_byte is not null
    union all
    select
        model,
        2 as place
    from forecast_accuracy
    where num_all_questions > 0
    union all
    select
        model,
        2 as place
    from scylla_scores
    union all
    select
        model,
        3 as place
    from monthly_loss
    where protocol = 'published' and is_text and model not like 'control:%'
),

names as (
    select
        model,
        min(place) as place
    from measured
    group by model
)

select
    n.model,
    n.place,
    m.* exclude (model)
from names as n
left join models as m on n.model = m.model
order by n.model like 'control:%', n.place, n.model
