-- Adjusted scores of the bins of 30 days that the Temporal Bias Index of accuracy is fitted to.
-- Grain: one row per model, source, protocol, bin; questions opened before the model's release.
-- Parameter: variance, of one answer: 'null', that of a guess, or 'observed'.
-- Units: bin is the number of days since 2015-01-01 over 30, rounded half to even, so that a bin
--   reaches 15 days to either side of its middle. adjusted_score is NULL where the observed
--   variance is 0.
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
            avg(expected) as expected_accuracy
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
        ) as adjusted_score
    from counted;
