-- How hard each month is for language models, for a compressor and for old models.
-- p_value: of a difficulty of 0, the mean over months [probability]
select
    d.source,
    d.month,
    d.difficulty,
    d.difficulty_low,
    d.difficulty_high,
    d.p_value,
    d.compressor_difficulty,
    d.thermometer_difficulty,
    d.num_models,
    d.num_thermometers
from month_difficulty as d
where d.protocol = $protocol and d.source is not null
order by d.source, d.month
