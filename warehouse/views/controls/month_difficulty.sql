-- How difficult each month's text is for language models, for compressors and for thermometers.
-- Grain: one row per source, protocol, month; source NULL: of the mean over sources of text.
-- Units: bits per byte, less the mean over the months. difficulty: of the panel, for a model of
--   mean sensitivity; *_low and *_high bound a 95 % interval over months. difficulty is NULL with a
--   single model, and where it cannot be separated from the models' gaps; reason says so.
--   compressor_difficulty: of control:zstd. thermometer_difficulty: of models with role thermometer
--   in the catalogue, whose cutoff is before the first month.
-- A new regime counts as difficulty. regime is NULL for the mean over sources.
-- Source: docs/metrics.md (The panel).
create or replace view month_difficulty as
with told as (
    -- A single model's curve would be its own difficulty.
    select
        *
        replace (
            case when num_models >= minimum('models of a difficulty') then difficulty end
                as difficulty
        ),
        count(*) filter (where num_models > 0) over (partition by source, protocol)
            as num_panel_months
    from internal.panel_difficulty
)

select
    d.source,
    case when d.source is null then 'all' else 'source' end as scope,
    d.protocol,
    d.month,
    d.difficulty,
    d.difficulty - t_975(d.degrees_of_freedom) * d.difficulty_error as difficulty_low,
    d.difficulty + t_975(d.degrees_of_freedom) * d.difficulty_error as difficulty_high,
    difference_p_value(d.difficulty, d.difficulty_error, d.degrees_of_freedom) as p_value,
    d.num_models,
    d.compressor_difficulty,
    d.thermometer_difficulty,
    d.num_thermometers,
    s.regime,
    s.is_regime_start,
    case
        when d.num_models < minimum('models of a difficulty')
            then
                too_few(
                    d.num_models, 'model', ' with this month, a known cutoff and '
                    || minimum('blocks of a panel') || ' blocks of three months',
                    'models of a difficulty'
                )
        when d.difficulty is null then 'the models cannot tell it from their gaps'
        when d.difficulty_error is null
            then 'no interval: ' || d.num_panel_months || ' months leave no degrees of freedom'
    end as reason
from told as d
left join source_months as s on d.source = s.source and d.month = s.month;
