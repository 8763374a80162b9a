-- Mean difference of two models over the months in which both measured the same documents.
-- Grain: one row per model, other_model, source, protocol. For other views to read.
-- Units: difference is model less other_model, in bits per byte: the unweighted mean over months.
--   standard_error is of the mean of paired bootstrap replicates (a page that recurs in several
--   months has the same weight in all of them); NULL if a month has no pooled error.
-- Replicates are averaged once per model and set of months, not per pair: most pairs share a set.
-- Source: docs/metrics.md (Pairs).
create or replace view internal.same_document_differences as
with pairs as materialized (
    select
        model,
        other_model,
        source,
        protocol,
        list(month order by month) as months,
        count(*) as num_months,
        cast(sum(num_documents) as bigint) as num_documents,
        avg(difference) as difference,
        count(sum_of_variances) = count(*) as has_errors,
        coalesce(
            power(sum(sum_of_variances), 2)
            / nullif(sum(power(sum_of_variances, 2) / degrees_of_freedom), 0),
            min(degrees_of_freedom)
        ) as degrees_of_freedom
    from internal.paired_cells
    where has_same_documents
    group by model, other_model, source, protocol
),

sides as (
    select
        unnest([model, other_model]) as model,
        source,
        protocol,
        months
    from pairs
),

month_sets as materialized (
    select
        model,
        source,
        protocol,
        months,
        row_number() over () as id
    from sides
    group by model, source, protocol, months
),

members as (
    select
        id,
        model,
        source,
        protocol,
        unnest(months) as month
    from month_sets
),

means as (
    select
        s.id,
        r.replicate,
        avg(r.deviation) as deviation
    from internal.pooled_deviations as r
    inner join members as s
        on
            r.model = s.model
            and r.source = s.source
            and r.protocol = s.protocol
            and r.month = s.month
    group by s.id, r.replicate
),

vectors as materialized (
    select
        id,
        list(deviation order by replicate) as deviations
    from means
    group by id
)

select
    p.* exclude (months, has_errors, degrees_of_freedom),
    case when p.has_errors then paired_error(v.deviations, w.deviations) end as standard_error,
    p.degrees_of_freedom
from pairs as p
inner join month_sets as a
    on p.model = a.model and p.source = a.source and p.protocol = a.protocol and p.months = a.months
inner join month_sets as b
    on
        p.other_model = b.model
        and p.source = b.source
        and p.protocol = b.protocol
        and p.months = b.months
left join vectors as v on a.id = v.id
left join vectors as w on b.id = w.id;
