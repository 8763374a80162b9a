-- Difference of some models in each month of a source, of text new to both.
-- Grain: one row per model, other_model, source, protocol, month; only months in which both have
--   the same documents. model comes first in the alphabet.
-- Parameter: models, a list of names, such as ['gpt2', 'control:zstd'].
-- Units: difference is model less other_model, in bits per byte. *_documents: would other documents
--   of this month say the same? NULL if all documents of the month are in one cluster; reason
--   says so.
-- Source: docs/metrics.md (Pairs, New text).
create or replace macro month_difference_at(models) as table
    with chosen as (
        select unnest(models) as model
    ),

    deviations as (
        select
            model,
            source,
            protocol,
            month,
            list(deviation order by replicate) as deviations
        from internal.replicate_deviations
        -- A join with chosen would read the replicates of all models.
        where list_contains(models, model)
        group by model, source, protocol, month
    ),

    pairs as (
        select
            p.*,
            t_975(p.degrees_of_freedom) * paired_error(a.deviations, b.deviations) as half
        from internal.paired_cells as p
        inner join chosen as one on p.model = one.model
        inner join chosen as two on p.other_model = two.model
        left join deviations as a
            on
                p.model = a.model
                and p.source = a.source
                and p.protocol = a.protocol
                and p.month = a.month
        left join deviations as b
            on
                p.other_model = b.model
                and p.source = b.source
                and p.protocol = b.protocol
                and p.month = b.month
        where p.has_same_documents
    )

    select
        model,
        other_model,
        source,
        protocol,
        month,
        difference,
        difference - half as difference_low_documents,
        difference + half as difference_high_documents,
        num_documents,
        case when half is null then cell_reason(true, 1, num_documents, null) end as reason
    from pairs;
