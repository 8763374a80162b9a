-- Share of right answers by tenths of the probability of the chosen option.
-- Grain: one row per model, source, protocol, bin; bins without answers have no row.
-- Units: bin is the lower end of the tenth (the last bin includes 1). Shares are 0 to 1;
--   accuracy_low and accuracy_high: Wilson's 95 % interval. Answers without a probability of the
--   chosen option are left out.
-- Source: Murphy 1973, "A New Vector Partition of the Probability Score".
create or replace view internal.forecast_reliability as
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
