-- Difference of two models on the documents that both measured, for cells with different documents.
-- Grain: one row per model, other_model, source, protocol, month. For other views to read.
-- Units: difference is model less other_model, in bits per byte: a ratio of sums over the clusters
--   of shared_clusters. standard_error is the jackknife's over clusters, as in landed_cells;
--   degrees_of_freedom are as in paired_cells. NULL with a single cluster.
-- Source: docs/metrics.md (Pairs).
create or replace view internal.shared_documents as
with clusters as materialized (
    select * from internal.shared_clusters
),

sums as materialized (
    select
        model,
        other_model,
        source,
        protocol,
        month,
        sum(num_documents) as num_documents,
        sum(difference_bits) as difference_bits,
        sum(num_bytes) as num_bytes
    from clusters
    group by model, other_model, source, protocol, month
    having sum(num_bytes) > 0
),

-- Change of the difference if a cluster is left out; NULL if it has all bytes.
residuals as (
    select
        s.model,
        s.other_model,
        s.source,
        s.protocol,
        s.month,
        (k.difference_bits - k.num_bytes * s.difference_bits / s.num_bytes)
        / nullif(s.num_bytes - k.num_bytes, 0) as residual
    from clusters as k
    inner join sums as s
        on
            k.model = s.model
            and k.other_model = s.other_model
            and k.source = s.source
            and k.protocol = s.protocol
            and k.month = s.month
),

errors as (
    select
        model,
        other_model,
        source,
        protocol,
        month,
        count(*) as num_clusters,
        case when count(residual) = count(*) then sum(power(residual, 2)) end as sum_2,
        sum(power(residual, 4)) as sum_4
    from residuals
    group by model, other_model, source, protocol, month
)

select
    s.model,
    s.other_model,
    s.source,
    s.protocol,
    s.month,
    cast(s.num_documents as bigint) as num_documents,
    s.difference_bits / s.num_bytes as difference,
    sqrt(e.sum_2 * (e.num_clusters - 1) / e.num_clusters) as standard_error,
    case
        when e.sum_2 is not null
            then
                least(
                    e.num_clusters - 1,
                    coalesce(3 * e.sum_2 * e.sum_2 / nullif(e.sum_4, 0), 'inf')
                )
    end as degrees_of_freedom
from sums as s
inner join errors as e
    on
        s.model = e.model
        and s.other_model = e.other_model
        and s.source = e.source
        and s.protocol = e.protocol
        and s.month = e.month;
