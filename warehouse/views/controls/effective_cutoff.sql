-- The month whose versions of the monitored pages a model knows best, by source.
-- Grain: one row per model, source, protocol; only sources whose pages come back.
-- Each version's loss is taken over the mean of its page's versions (version_losses);
--   effective_cutoff is the month of the lowest mean over pages, lowest_relative_loss.
-- The interval: all months of the range that are not significantly worse than that one, by a paired
--   t test over the pages that have both, one-sided at 5 % over the number of other months
--   (Bonferroni). Where no month is significantly worse, all three are NULL: nothing can be told.
-- A model that has read every version up to its cutoff knows them all equally well: the interval
--   then reaches from the first to that month.
-- Units: relative losses are fractions of a page's mean.
-- Source: Cheng et al. 2024, "Dated Data", arXiv 2403.12958. Reads version_differences, models.
create or replace view effective_cutoff as
-- p_value: NULL where every page differs by the same.
with tested as (
    select
        *,
        case
            when standard_error > 0
                then t_p_value(difference / standard_error, num_pages - 1) / 2
        end as p_value
    from version_differences
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
left join models as m on r.model = m.model;
