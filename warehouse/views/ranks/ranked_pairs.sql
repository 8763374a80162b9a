-- Significance of the difference of every two models in the same source and month.
-- Grain: one row per model, other_model, source, protocol, month, in both orders; only pairs that
--   share documents. For other views to read.
-- Units: difference is model less other_model, in bits per byte, on the documents that both
--   measured. p_value is two-sided, of Student's t; the standard error is of paired bootstrap
--   replicates, or the jackknife's (shared_documents) if not has_same_documents. p_value is NULL if
--   a month has a single cluster, and below 2 degrees of freedom (1.999 because of rounding), where
--   no difference is significant.
-- Source: docs/metrics.md (Pairs).
create or replace view internal.ranked_pairs as
with vectors as (
    select
        model,
        source,
        protocol,
        month,
        list(deviation order by replicate) as deviations
    from internal.pooled_deviations
    group by model, source, protocol, month
),

errors as (
    select
        p.model,
        p.other_model,
        p.source,
        p.protocol,
        p.month,
        true as has_same_documents,
        p.difference,
        p.degrees_of_freedom,
        paired_error(a.deviations, b.deviations) as standard_error
    from internal.paired_cells as p
    left join vectors as a
        on
            p.model = a.model
            and p.source = a.source
            and p.protocol = a.protocol
            and p.month = a.month
    left join vectors as b
        on
            p.other_model = b.model
            and p.source = b.source
            and p.protocol = b.protocol
            and p.month = b.month
    where p.has_same_documents
    union all by name
    select
        * exclude (num_documents),
        false as has_same_documents
    from internal.shared_documents
),

pairs as (
    select
        e.*,
        coalesce(size_class(m.parameters) = size_class(o.parameters), false) as is_same_class,
        case
            when e.degrees_of_freedom > 1.999
                then difference_p_value(e.difference, e.standard_error, e.degrees_of_freedom)
        end as p_value
    from errors as e
    left join main.models as m on e.model = m.model
    left join main.models as o on e.other_model = o.model
)

select
    source,
    protocol,
    month,
    has_same_documents,
    is_same_class,
    p_value,
    unnest([model, other_model]) as model,
    unnest([other_model, model]) as other_model,
    unnest([difference, -difference]) as difference
from pairs;
