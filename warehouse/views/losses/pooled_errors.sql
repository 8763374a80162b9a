-- The error of each dated cell, for figures over several cells: its own, or the pooled one.
-- Grain: one row per model, source, protocol, month with a finite figure. For other views to read.
-- A cell is thin if it has one cluster of documents, or at most four and a tenth of the source's
--   median. Its own error is unknown or has few degrees of freedom. It gets the pooled error: the
--   squared errors of a single cluster, averaged over the source's other months, weighted by their
--   clusters less one, and divided by the cell's clusters.
-- Units: bits per byte. NULL if the cell has one cluster, and fewer than four months of the source
--   have an error. degrees_of_freedom: 3 times the cell's if its clusters allow (ADR 0016); the sum
--   over the other months if is_pooled.
-- Source: docs/metrics.md (Intervals); Cochran 1954, "The combination of estimates from different
--   experiments", Biometrics 10.
create or replace view internal.pooled_errors as
with cells as (
    select
        model,
        source,
        protocol,
        month,
        num_clusters,
        standard_error,
        least(3 * degrees_of_freedom, num_clusters - 1) as degrees_of_freedom,
        num_clusters = 1
        or num_clusters <= least(
            4, median(num_clusters) over (partition by model, source, protocol) / 10
        ) as is_thin
    from internal.sound_cells
    where month is not null and num_bytes > 0
),

pools as (
    select
        model,
        source,
        protocol,
        sqrt(
            sum((num_clusters - 1) * num_clusters * power(standard_error, 2))
            / sum(num_clusters - 1)
        ) as cluster_error,
        sum(degrees_of_freedom) as degrees_of_freedom
    from cells
    where not is_thin and standard_error is not null
    group by model, source, protocol
    having count(*) >= minimum('months with an error')
)

select
    c.model,
    c.source,
    c.protocol,
    c.month,
    case
        when c.is_thin and p.model is not null then p.cluster_error / sqrt(c.num_clusters)
        else c.standard_error
    end as standard_error,
    case
        when c.is_thin and p.model is not null then p.degrees_of_freedom
        when c.standard_error is not null then c.degrees_of_freedom
    end as degrees_of_freedom,
    c.num_clusters,
    c.is_thin and p.model is not null as is_pooled
from cells as c
left join pools as p
    on c.model = p.model and c.source = p.source and c.protocol = p.protocol;
