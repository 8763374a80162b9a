-- A second change in a model's curve, which shows training text of two periods, as after continued
--   training.
-- Grain: one row per model, source, protocol with a change in estimated_cutoff; source is
--   NULL where scope is all, the mean over sources.
-- first_cutoff and second_cutoff are the last months before two rises. They are NULL unless q_value
--   is at most 0.05; reason then says why. q_value is Benjamini-Hochberg's of p_value over the
--   models and sources of a protocol that have a change; the means over sources are a family of
--   their own. An end of an interval of 95 % that is NULL is open, and reason says so.
-- p_value: that of a single change, of any of the shapes in docs/metrics.md (Cutoffs).
-- Units: months as first days.
-- Source: warehouse/estimates/pairs.py, which has the formulas; docs/metrics.md (Cutoffs).
create or replace view second_cutoff as
select
    model,
    source,
    case when source is null then 'all' else 'source' end as scope,
    protocol,
    case when has_two_rises then first_rise end as first_cutoff,
    case when has_two_rises then first_rise_low end as first_cutoff_low,
    case when has_two_rises then first_rise_high end as first_cutoff_high,
    case when has_two_rises then second_rise end as second_cutoff,
    case when has_two_rises then second_rise_low end as second_cutoff_low,
    case when has_two_rises then second_rise_high end as second_cutoff_high,
    second_p_value as p_value,
    second_q_value as q_value,
    case
        when has_two_rises
            then
                nullif(
                    concat_ws(
                        '; ',
                        doubt,
                        case when first_rise_low is null then 'the first may be earlier' end,
                        case when first_rise_high is null then 'the first may be later' end,
                        case when second_rise_low is null then 'the second may be earlier' end,
                        case when second_rise_high is null then 'the second may be later' end
                    ),
                    ''
                )
        when second_p_value is null and num_months < minimum('months of two changes')
            then too_few(num_months, 'month', '', 'months of two changes')
        when second_p_value is null
            then
                'other models tell ' || num_told || ' of its months; '
                -- A second rise leaves at least three degrees of freedom.
                || (num_told + 4 - num_free) || ' are needed'
        else 'one change explains the curve as well'
    end as reason
from internal.cutoff_tests
where is_found;
