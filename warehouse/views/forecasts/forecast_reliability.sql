-- Is a model right as often as its probabilities say? Tenths of the probability of its choice.
-- Grain: one row per model, source, protocol, bin; bins without answers are not there.
-- Units: bin is the lower end of the tenth (the last one includes 1); shares, 0 to 1; accuracy_low
--   and accuracy_high bound a 95 % interval (Wilson's). Answers without a probability of the chosen
--   option are not in it.
-- Source: Murphy 1973, "A New Vector Partition of the Probability Score".
create or replace view forecast_reliability as
with binned as (
    select
        *,
        least(9, floor(p_chosen * 10)) / 10 as bin
    from internal.judged_answers
    where p_chosen is not null
)

select
    model,
    source,
    protocol,
    bin,
    count(*) as num_answers,
    avg(p_chosen) as mean_probability,
    avg(cast(is_correct as integer)) as accuracy,
    wilson_low(count(*) filter (where is_correct), count(*)) as accuracy_low,
    wilson_high(count(*) filter (where is_correct), count(*)) as accuracy_high
from binned
group by model, source, protocol, bin;
