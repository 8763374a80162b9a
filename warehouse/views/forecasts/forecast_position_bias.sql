-- Position bias of answers: how much probability each place of the shown list of options gets.
-- Grain: one row per model, source, protocol, place. Imported answers have no places.
-- Units: place counts from 1. share is the mean probability of the option in this place; the share
--   of choices if answers are written. expected_share is the mean of 1 / options. bias is their
--   difference; bias_low, bias_high: 95 % interval by Student's t, NULL below two answers.
--   is_balanced: options are rotated, so that every option is equally often in each place, and a
--   bias is of the place alone. Else it is also of what the options say.
-- Source: docs/metrics.md (Forecasts).
create or replace view forecast_position_bias as
with placed as (
    select
        model,
        source,
        protocol,
        1 / len(place_probabilities) as expected,
        unnest(place_probabilities) as probability,
        unnest(range(1, len(place_probabilities) + 1)) as place
    from forecast_answers
    where place_probabilities is not null
),

compared as (
    select
        model,
        source,
        protocol,
        place,
        avg(probability - expected) as bias,
        t_975(greatest(1, count(*) - 1)) * stddev_samp(probability - expected) / sqrt(count(*))
            as half_width,
        avg(probability) as share,
        avg(expected) as expected_share,
        count(*) as num_answers
    from placed
    group by model, source, protocol, place
)

select
    model,
    source,
    protocol,
    place,
    bias,
    bias - half_width as bias_low,
    bias + half_width as bias_high,
    share,
    expected_share,
    num_answers,
    protocol = 'generate' or regexp_matches(protocol, '-rotated(-|$)') as is_balanced
from compared;
