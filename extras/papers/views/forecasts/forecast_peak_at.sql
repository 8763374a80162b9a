-- The period of the questions that a model answers best, and its distance to the model's cutoff.
-- Grain: one row per model, source, protocol.
-- Parameter: num_months, the length of a period; periods are counted from 2015-01-01. NULL: the
--   paper's periods, which are the days from 2015-01-01 to the opening / 90, rounded half to even,
--   as in forecast_recency.
-- peak: the first day of the period; of the paper's periods, that of the half-year. Two periods are
--   a half-year, and 0 is the first of 2015.
-- Units: peak_accuracy is a share, with Wilson's 95 % interval, which ignores that the best of
--   several periods was selected. A period with fewer questions than a quarter of the median cannot
--   be the peak. On a tie, the latest period counts. months_to_cutoff: from the first month of the
--   peak to the cutoff month (of release if the cutoff is unknown); negative if the peak is later.
--   Models without an answer have no row.
-- Source: Zhu et al. 2024, section 4.2, Tables 8 and 15; docs/metrics.md (Forecasts).
create or replace macro papers.forecast_peak_at(num_months) as table
    with periods as (
        select
            model,
            source,
            protocol,
            case
                when num_months is null
                    then cast(round_even((opened - date '2015-01-01') / 90.0, 0) as bigint)
                else datediff('month', date '2015-01-01', period_of(opened, num_months))
            end as period,
            any_value(coalesce(cutoff, cast(date_trunc('month', released) as date)))
                as cutoff_month,
            count(*) as num_questions,
            count(*) filter (where is_correct) as num_correct,
            bool_or(is_parsed) as has_parsed
        from internal.judged_answers
        group by model, source, protocol, period
    ),

    sized as (
        select
            *,
            case
                when num_months is null
                    then cast(date '2015-01-01' + to_months(6 * (period // 2)) as date)
                else cast(date '2015-01-01' + to_months(period) as date)
            end as peak,
            count(*) over (partition by model, source, protocol) as num_periods,
            median(num_questions) over (partition by model, source, protocol) as usual,
            bool_or(has_parsed) over (partition by model, source, protocol) as has_answers
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
        datediff('month', peak, cutoff_month) as months_to_cutoff,
        case when cutoff_month is null then 'cutoff and release unknown' end as reason
    from sized
    where num_questions >= usual / 4 and has_answers
    qualify
        row_number() over (
            partition by model, source, protocol
            order by num_correct / num_questions desc, period desc
        ) = 1;
