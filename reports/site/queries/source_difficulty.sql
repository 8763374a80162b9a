-- How hard each month is for language models, for a compressor and for old models.
select
    source,
    month,
    difficulty,
    difficulty_low,
    difficulty_high,
    compressor_difficulty,
    thermometer_difficulty,
    num_models,
    num_thermometers
from month_difficulty
where protocol = $protocol and source is not null
order by source, month
