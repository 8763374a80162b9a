-- Relative loss of each month's page versions less the relative loss in the best month.
-- Grain: one row per model, source, protocol, month other than best_month. For effective_cutoff.
-- best_month has the lowest mean over pages, lowest_relative_loss. Each version is compared with
--   the version of the same page in best_month; num_pages have both versions.
-- Units: fractions of a page's mean loss over its versions.
-- Source: Cheng et al. 2024, "Dated Data", arXiv 2403.12958.
create or replace view internal.version_differences as
with versions as materialized (
    from internal.version_losses
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
        arg_min(month, mean_loss) as best_month,
        min(mean_loss) as lowest_relative_loss,
        any_value(num_months) as num_months
    from months
    group by model, source, protocol
)

select
    v.model,
    v.source,
    v.protocol,
    v.month,
    any_value(l.best_month) as best_month,
    any_value(l.lowest_relative_loss) as lowest_relative_loss,
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
        and l.best_month = b.month
        and v.cluster_id = b.cluster_id
where v.month != l.best_month
group by v.model, v.source, v.protocol, v.month;
