-- The month whose versions of the monitored pages a model knows best, by source.
-- Grain: one row per model, source, protocol; only sources whose pages come back (version_losses).
-- Each version's loss is taken over the mean of its page's versions; effective_cutoff is the month
--   of the lowest mean over pages, lowest_relative_loss.
-- The interval: all months of the range that are not significantly worse than that one, by a paired
--   t test over the pages that have both, one-sided at 5 % over the number of other months
--   (Bonferroni). Where no month is significantly worse, all three are NULL: nothing can be told.
-- A model that has read every version up to its cutoff knows them all equally well: the interval
--   then reaches from the first to that month.
-- Units: relative losses are fractions of a page's mean.
-- Source: Cheng et al. 2024, "Dated Data", arXiv 2403.12958. Reads version_losses, models.
create or replace view effective_cutoff as
with versions as materialized (
    from version_losses
),

months as (
    select
        model,
        source,
        protocol,
        month,
        avg(relative_loss) as mean_loss,
        count(*) over series as num_months
    from versions
    group by model, source, protocol, month
    window series as (partition by model, source, protocol)
),

lowest as (
    select
        model,
        source,
        protocol,
        arg_min(month, mean_loss) as month,
        min(mean_loss) as mean_loss,
        any_value(num_months) as num_months
    from months
    group by model, source, protocol
),

-- Each version against its page's in the best month.
differences as (
    select
        v.model,
        v.source,
        v.protocol,
        v.month,
        any_value(l.num_months) as num_months,
        count(*) as num_pages,
        avg(v.relative_loss - b.relative_loss) as difference,
        stddev_samp(v.relative_loss - b.relative_loss) / sqrt(count(*)) as standard_error
    from versions as v
    inner join lowest as l
        on v.model = l.model and v.source = l.source and v.protocol = l.protocol
    inner join versions as b
        on
            l.model = b.model
            and l.source = b.source
            and l.protocol = b.protocol
            and l.month = b.month
            and v.cluster_id = b.cluster_id
    where v.month != l.month
    group by v.model, v.source, v.protocol, v.month
),

judged as (
    select
        *,
        difference > 0
        and num_pages >= 3
        and case
            when standard_error > 0
                then t_p_value(difference / standard_error, num_pages - 1) / 2
                    <= 0.05 / (num_months - 1)
            else true
        end as is_worse
    from differences
),

ranges as (
    select
        model,
        source,
        protocol,
        bool_or(is_worse) as is_told,
        max(num_pages) as num_pages,
        min(month) filter (where not is_worse) as low,
        max(month) filter (where not is_worse) as high
    from judged
    group by model, source, protocol
)

select
    l.model,
    l.source,
    l.protocol,
    l.num_months,
    r.num_pages,
    case when r.is_told then l.month end as effective_cutoff,
    case when r.is_told then least(l.month, r.low) end as effective_cutoff_low,
    case when r.is_told then greatest(l.month, r.high) end as effective_cutoff_high,
    l.mean_loss as lowest_relative_loss,
    m.cutoff as catalogue_cutoff,
    case when r.is_told then date_diff('month', m.cutoff, l.month) end as difference_months
from lowest as l
inner join ranges as r
    on l.model = r.model and l.source = r.source and l.protocol = r.protocol
left join models as m on l.model = m.model;
