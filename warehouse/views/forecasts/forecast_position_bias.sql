-- Position bias of answers: how much probability each place of the shown list of options gets.
-- Grain: one row per model, source, protocol, place. Imported answers have no places.
-- Units: place counts from 1. share is the mean probability of the option in this place; the share
--   of choices if answers are written. expected_share is the mean of 1 / options. bias is their
--   difference; bias_low, bias_high: 95 % interval by Student's t. For written answers it is
--   Wilson's interval of share, less expected_share. reason: one answer is too few for Student's.
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
        wilson_low(sum(probability), count(*)) as written_low,
        wilson_high(sum(probability), count(*)) as written_high,
        avg(probability) as share,
        avg(expected) as expected_share,
        count(*) as num_answers,
        starts_with(protocol, 'generate') as is_written
    from placed
    group by model, source, protocol, place
)

select
    model,
    source,
    protocol,
    place,
    bias,
    case when is_written then written_low - expected_share else bias - half_width end as bias_low,
    case when is_written then written_high - expected_share else bias + half_width end as bias_high,
    share,
    expected_share,
    num_answers,
    is_written or regexp_matches(protocol, '-rotated(-|$)') as is_balanced,
    case
        when not is_written
            then lacking_number(num_answers, 'answer', ' with probabilities', 'answers of a mean')
    end as reason
from compared;
