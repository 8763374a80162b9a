-- Mean difference of two models on a source, over all months that both have.
-- Grain: one row per model, other_model, source, protocol; only sources of calendar months. For
--   other views to read.
-- Units: difference is model less other_model, in bits per byte: the unweighted mean of the monthly
--   differences on the documents that both measured. A month with different documents counts with
--   its shared documents, and as independent of other months. degrees_of_freedom: Satterthwaite's.
-- month_error is of other months: the jackknife that leaves out one block of three calendar months
--   at a time; blocks has what the difference changes without each. Both are NULL with one block.
-- Source: docs/metrics.md (Pairs, Intervals).
create or replace view internal.source_differences as
with others as materialized (
    select * from internal.shared_documents
),

parts as (
    select
        model,
        other_model,
        source,
        protocol,
        num_months,
        num_documents,
        difference,
        standard_error,
        degrees_of_freedom
    from internal.same_document_differences
    union all
    select
        model,
        other_model,
        source,
        protocol,
        1 as num_months,
        num_documents,
        difference,
        standard_error,
        degrees_of_freedom
    from others
),

months as (
    select
        model,
        other_model,
        source,
        protocol,
        month,
        difference
    from internal.paired_cells
    where has_same_documents
    union all by name
    select
        model,
        other_model,
        source,
        protocol,
        month,
        difference
    from others
),

quarters as (
    select
        model,
        other_model,
        source,
        protocol,
        date_trunc('quarter', month) as quarter,
        count(*) as num_months,
        sum(difference) as difference
    from months
    group by model, other_model, source, protocol, date_trunc('quarter', month)
),

changes as (
    select
        *,
        change_without(difference, num_months, sum(difference) over pair, sum(num_months) over pair)
            as change
    from quarters
    window pair as (partition by model, other_model, source, protocol)
),

blocks as (
    select
        model,
        other_model,
        source,
        protocol,
        count(*) as num_blocks,
        sqrt(jackknife_variance(sum(power(change, 2)), count(change))) as month_error,
        list(struct_pack(quarter := quarter, change := change)) as blocks
    from changes
    group by model, other_model, source, protocol
),

sums as (
    select
        model,
        other_model,
        source,
        protocol,
        cast(sum(num_months) as bigint) as num_months,
        cast(sum(num_documents) as bigint) as num_documents,
        sum(num_months * difference) / sum(num_months) as difference,
        case
            when count(standard_error) = count(*)
                then sqrt(sum(power(num_months * standard_error, 2))) / sum(num_months)
        end as standard_error,
        coalesce(
            power(sum(power(num_months * standard_error, 2)), 2)
            / nullif(sum(power(num_months * standard_error, 4) / degrees_of_freedom), 0),
            min(degrees_of_freedom)
        ) as degrees_of_freedom
    from parts
    group by model, other_model, source, protocol
),

kinds as (
    select
        source,
        protocol,
        bool_and(is_text) as is_text
    from internal.paired_cells
    group by source, protocol
)

select
    s.*,
    b.num_blocks,
    b.month_error,
    b.blocks,
    k.is_text
from sums as s
inner join blocks as b
    on
        s.model = b.model
        and s.other_model = b.other_model
        and s.source = b.source
        and s.protocol = b.protocol
inner join kinds as k on s.source = k.source and s.protocol = k.protocol
where source_period(s.source) = 'month';
