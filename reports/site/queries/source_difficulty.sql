-- How hard each month is for language models, for a compressor and for old models.
-- p_value: of no difference from the mean over months.
-- p_value: of a difficulty of 0, the mean over months [probability]
select
    d.source,
    d.month,
    d.difficulty,
    d.difficulty_low,
    d.difficulty_high,
    difference_p_value(d.difficulty, p.difficulty_error, p.degrees_of_freedom) as p_value,
    d.compressor_difficulty,
    d.thermometer_difficulty,
    d.num_models,
    d.num_thermometers
from month_difficulty as d
left join internal.panel_difficulty as p
    on d.source = p.source and d.protocol = p.protocol and d.month = p.month
where d.protocol = $protocol and d.source is not null
order by d.source, d.month
