-- Temporal Bias Index of accuracy: slope of the adjusted score over the opening date of questions.
-- Grain: one row per model, source, protocol; models of known release, two bins or more.
-- Parameter: variance of one answer. 'null' is a guess's variance, which gives the published
--   figures. 'observed' is as in the paper's equation; it leaves out bins with all or none right.
-- Units: tbi_x1000 is 1000 times the slope of the adjusted score per 30 days; intercept is the
--   line's value on 2015-01-01. *_low, *_high and p_value: Student's t of ordinary least squares,
--   because a guesser's scores vary equally in small and large bins. reason: NULLs below three
--   bins, or without an answer.
--   bias_class (the paper's rule): Balanced from -1 to 1, Nostalgia below, Neophilia above. The
--   rule ignores chance; forecast_bias_test does not. No answers: none of a model's texts has one.
-- Source: Zhu et al. 2024, section 4.2 and Table 7; docs/metrics.md (Forecasts).
create or replace macro internal.forecast_tbi_at(variance) as table
    with fitted as (
        select
            model,
            source,
            protocol,
            count(adjusted_score) as num_bins,
            cast(sum(num_questions) filter (where adjusted_score is not null) as bigint)
                as num_questions,
            case when bool_or(has_parsed) then regr_slope(adjusted_score, bin) end as slope,
            case when bool_or(has_parsed) then regr_intercept(adjusted_score, bin) end as intercept,
            regr_avgx(adjusted_score, bin) as mean_bin,
            regr_sxx(adjusted_score, bin) as sxx,
            greatest(
                0,
                regr_syy(adjusted_score, bin)
                - pow(regr_sxy(adjusted_score, bin), 2) / nullif(regr_sxx(adjusted_score, bin), 0)
            ) / nullif(count(adjusted_score) - 2, 0) as noise,
            bool_or(has_parsed) as has_parsed
        from internal.forecast_bins_at(variance)
        group by model, source, protocol
    ),

    doubted as (
        select
            *,
            sqrt(noise / sxx) as slope_error,
            sqrt(noise * (1 / num_bins + mean_bin * mean_bin / sxx)) as intercept_error,
            t_975(greatest(1, num_bins - 2)) as quantile
        from fitted
        where num_bins >= 2 and sxx > 0
    )

    select
        model,
        source,
        protocol,
        1000 * slope as tbi_x1000,
        1000 * (slope - quantile * slope_error) as tbi_x1000_low,
        1000 * (slope + quantile * slope_error) as tbi_x1000_high,
        difference_p_value(slope, slope_error, greatest(1, num_bins - 2)) as p_value,
        intercept,
        intercept - quantile * intercept_error as intercept_low,
        intercept + quantile * intercept_error as intercept_high,
        num_bins as num_months,
        num_questions,
        case
            when not has_parsed then 'No answers'
            when 1000 * slope < -1 then 'Nostalgia'
            when 1000 * slope > 1 then 'Neophilia'
            else 'Balanced'
        end as bias_class,
        case
            when not has_parsed then 'no text of the model has an answer'
            else lacking_number(num_bins, 'bin', ' of 30 days', 'bins of a line')
        end as reason
    from doubted;
