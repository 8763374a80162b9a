-- Mean difference of two models over the months in which both measured the same documents.
-- Grain: one row per model, other_model, source, protocol. For other views to read.
-- Units: difference is model less other_model, in bits per byte: the unweighted mean over months.
--   standard_error is of the mean of paired bootstrap replicates (a page that recurs in several
--   months has the same weight in all of them); NULL if a month has no pooled error.
-- Replicates are averaged once per model and set of months, not per pair: most pairs share a set.
--   Nearly all sets are the months of a model from some month on.
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

-- place plus a replicate is one number: there are 200 replicates, fewer than 256.
month_sets as materialized (
    select
        model,
        source,
        protocol,
        months,
        row_number() over () as id,
        dense_rank() over (order by model, source, protocol) * 256 as place
    from sides
    group by model, source, protocol, months
),

-- The sets that have all months of a model from the first one on: their sums are running sums.
runs as materialized (
    select
        s.id,
        any_value(s.model) as model,
        any_value(s.source) as source,
        any_value(s.protocol) as protocol,
        any_value(s.place) as place,
        any_value(s.months[1]) as first_month,
        count(*) as num_months
    from month_sets as s
    inner join internal.pooled_errors as e
        on
            s.model = e.model
            and s.source = e.source
            and s.protocol = e.protocol
            and s.months[1] <= e.month
    where e.standard_error is not null
    group by s.id, s.months
    having count(*) = len(s.months)
),

curves as (
    select
        model,
        source,
        protocol,
        place,
        min(first_month) as first_month
    from runs
    group by model, source, protocol, place
),

running as (
    select
        c.place + r.replicate as place,
        r.month,
        sum(r.deviation) over (
            partition by c.place + r.replicate order by r.month desc
        ) as deviation
    from internal.pooled_deviations as r
    inner join curves as c
        on
            r.model = c.model
            and r.source = c.source
            and r.protocol = c.protocol
            and r.month >= c.first_month
),

members as (
    select
        id,
        model,
        source,
        protocol,
        unnest(months) as month
    from month_sets
    where id not in (select r.id from runs as r)
),

means as (
    select
        s.id * 256 + r.place % 256 as place,
        r.deviation / s.num_months as deviation
    from running as r
    inner join runs as s on r.place // 256 = s.place // 256 and r.month = s.first_month
    union all
    -- One number stands for set and replicate: else all replicates are grouped before the join.
    select
        s.id * 256 + r.replicate as place,
        avg(r.deviation) as deviation
    from internal.pooled_deviations as r
    inner join members as s
        on
            r.model = s.model
            and r.source = s.source
            and r.protocol = s.protocol
            and r.month = s.month
    group by s.id * 256 + r.replicate
),

vectors as materialized (
    select
        place // 256 as id,
        list(deviation order by place) as deviations
    from means
    group by place // 256
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
