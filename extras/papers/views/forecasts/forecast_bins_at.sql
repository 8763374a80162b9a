-- Adjusted scores in bins of 30 days, to which forecast_tbi_at fits a line.
-- Grain: one row per model, source, protocol, bin; questions opened before the model's release.
-- Parameter: variance of one answer: 'null' for the variance of a guess, or 'observed'.
-- Units: bin is (days since 2015-01-01) / 30, rounded half to even: a bin covers 15 days before and
--   after its middle. adjusted_score is NULL if the observed variance is 0.
-- Source: docs/metrics.md (Forecasts).
create or replace macro internal.forecast_bins_at(variance) as table
    with counted as (
        select
            model,
            source,
            protocol,
            round_even((opened - date '2015-01-01') / 30.0, 0) as bin,
            count(*) as num_questions,
            avg(cast(is_correct as integer)) as accuracy,
            avg(expected) as expected_accuracy,
            bool_or(is_parsed) as has_parsed
        from internal.judged_answers
        where is_before_release
        group by model, source, protocol, bin
    )

    select
        model,
        source,
        protocol,
        bin,
        num_questions,
        accuracy,
        expected_accuracy,
        adjusted_score(
            accuracy,
            expected_accuracy,
            case
                when variance = 'null' then expected_accuracy
                when variance = 'observed' then accuracy
                else cast(error('variance must be null or observed') as double)
            end,
            num_questions
        ) as adjusted_score,
        has_parsed
    from counted;
