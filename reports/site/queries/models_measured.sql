-- What is known of each model with losses, where the views of other instruments cannot be read.
with names as (
    select distinct
        model,
        1 as place
    from monthly_loss
    where protocol = $protocol and bits_per_byte is not null
)

select
    n.model,
    n.place,
    m.* exclude (model)
from names as n
left join models as m on n.model = m.model
order by n.model like 'control:%', n.model
