-- The period whose questions a model answers best, and how long before its cutoff that is.
-- Grain: one row per model, source, protocol.
-- Parameter: num_months, the length of a period; periods are counted from 2015-01-01.
-- Units: peak_accuracy is a share; *_low and *_high bound its 95 % interval (Wilson's), which takes
--   no notice of its being the best of several. Periods of fewer questions than a quarter of the
--   median period's cannot be it. Of periods of equal accuracy the latest counts: it is how far
--   full knowledge reaches. months_to_cutoff is from the first month of the period to the cutoff
--   month (to the month of release where the cutoff is not known), negative after it.
-- Source: Zhu et al. 2024, section 4.2 (3 months), Tables 8 and 15 (6);
--   docs/metrics.md (Forecasts).
create or replace macro forecast_peak_at(num_months) as table
    with periods as (
        select
            model,
            source,
            protocol,
            period_of(opened, num_months) as peak,
            any_value(coalesce(cutoff, cast(date_trunc('month', released) as date)))
                as cutoff_month,
            count(*) as num_questions,
            count(*) filter (where is_correct) as num_correct
        from internal.judged_answers
        group by model, source, protocol, peak
    ),

    sized as (
        select
            *,
            count(*) over (partition by model, source, protocol) as num_periods,
            median(num_questions) over (partition by model, source, protocol) as usual
        from periods
    )

    select
        model,
        source,
        protocol,
        peak,
        num_correct / num_questions as peak_accuracy,
        wilson_low(num_correct, num_questions) as peak_accuracy_low,
        wilson_high(num_correct, num_questions) as peak_accuracy_high,
        num_questions as num_peak_questions,
        num_periods,
        cutoff_month,
        datediff('month', peak, cutoff_month) as months_to_cutoff
    from sized
    where num_questions >= usual / 4
    qualify
        row_number() over (
            partition by model, source, protocol
            order by num_correct / num_questions desc, peak desc
        ) = 1;
