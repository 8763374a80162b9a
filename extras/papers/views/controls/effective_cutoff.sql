-- The month of which a model predicts the versions of monitored pages best, by source.
-- Grain: one row per model, source, protocol; only sources with recurring pages.
-- Each version's loss is divided by the mean loss of its page's versions (version_losses).
--   effective_cutoff is the month with the lowest mean over pages, lowest_relative_loss.
-- The interval covers the months that are not significantly worse than the best month. The test is
--   a paired t test over pages with both months, one-sided at 5 % / number of other months. If no
--   month is significantly worse, the month and both ends are NULL.
-- A model trained on every version up to its cutoff predicts all these versions equally well. The
--   interval then reaches from the first month to the cutoff.
-- Units: relative losses are fractions of a page's mean.
-- Source: Cheng et al. 2024, "Dated Data", arXiv 2403.12958.
create or replace view internal.effective_cutoff as
-- p_value: NULL if all pages have the same difference.
with tested as (
    select
        *,
        case
            when standard_error > 0
                then t_p_value(difference / standard_error, num_pages - 1) / 2
        end as p_value
    from internal.version_differences
),

judged as (
    select
        *,
        difference > 0
        and num_pages >= 3
        and coalesce(p_value, 0) <= 0.05 / (num_months - 1) as is_worse
    from tested
),

ranges as (
    select
        model,
        source,
        protocol,
        any_value(best_month) as best_month,
        any_value(lowest_relative_loss) as lowest_relative_loss,
        any_value(num_months) as num_months,
        bool_or(is_worse) as is_told,
        max(num_pages) as num_pages,
        min(month) filter (where not is_worse) as low,
        max(month) filter (where not is_worse) as high
    from judged
    group by model, source, protocol
)

select
    r.model,
    r.source,
    r.protocol,
    r.num_months,
    r.num_pages,
    case when r.is_told then r.best_month end as effective_cutoff,
    case when r.is_told then least(r.best_month, r.low) end as effective_cutoff_low,
    case when r.is_told then greatest(r.best_month, r.high) end as effective_cutoff_high,
    r.lowest_relative_loss,
    m.cutoff as catalogue_cutoff,
    case when r.is_told then date_diff('month', m.cutoff, r.best_month) end as difference_months
from ranges as r
left join main.models as m on r.model = m.model;
