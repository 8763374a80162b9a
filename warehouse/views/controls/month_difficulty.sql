-- How difficult each month's text is for language models, beside what others say of it.
-- Grain: one row per source, protocol, month; source NULL: of the mean over sources of text.
-- Units: bits per byte, less the mean over the months. difficulty: of the panel, for a model of
--   mean sensitivity; *_low and *_high bound a 95 % interval over months; NULL where the models
--   cannot tell it from their gaps. compressor_difficulty: of control:zstd. thermometer_difficulty:
--   of models whose cutoff is before the first month.
-- Source: docs/metrics.md (The panel).
create or replace view month_difficulty as
with compressors as (
    select
        protocol,
        source,
        month,
        bits_per_byte
    from internal.controlled_curve
    where model = 'control:zstd'
)

select
    d.source,
    d.protocol,
    d.month,
    d.difficulty,
    d.difficulty - t_975(d.degrees_of_freedom) * d.difficulty_error as difficulty_low,
    d.difficulty + t_975(d.degrees_of_freedom) * d.difficulty_error as difficulty_high,
    d.num_models,
    c.bits_per_byte - avg(c.bits_per_byte) over (partition by d.protocol, d.source)
        as compressor_difficulty,
    d.thermometer_difficulty,
    d.num_thermometers
from internal.panel_difficulty as d
left join compressors as c
    on d.protocol = c.protocol and d.source is not distinct from c.source and d.month = c.month;
