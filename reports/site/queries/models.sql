-- What is known of each model with a figure of any instrument.
with measured as (
    select model, 1 as place from monthly_loss where protocol = $protocol and bits_per_byte is not null
    union all
    select model, 2 as place from forecast_accuracy where num_questions > 0
    union all
    select model, 2 as place from scylla_scores
)
select
    measured.model, coalesce(min(measured.place), 2) as place,
    any_value(columns(m.* exclude (model)))
from measured
left join models as m using (model)
group by measured.model
order by measured.model like 'control:%', place, measured.model
