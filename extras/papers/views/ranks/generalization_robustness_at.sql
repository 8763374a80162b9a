-- Generalization and robustness of each model, split at a date, with ranks.
-- Grain: one row per model, source, protocol; source NULL is the mean over sources of text.
-- Parameter: split_on, the first day after the split, for all models (Li et al.: 2023-01-01). NULL
--   splits each model after its own cutoff, and leaves out models without a cutoff.
-- Units: bits per byte. bits_per_byte_after measures generalization, bits_per_byte_gap robustness;
--   lower is better. Intervals are as in train_test_gap_at.
-- Ranks are by expected_next; 1 is the lowest. rank_in_band is among models of at most 7B (below 8
--   billion parameters), or among larger models. Only models with the same cells are ranked
--   (is_compared, from commonest_months), and no compressors; other ranks are NULL. With own
--   cutoffs, models have the same months, but each model divides the months differently.
-- Source: Li et al. 2024, Figure 2b, and Table 3 (ranks at most 7B and above); docs/metrics.md
--   (Ranks).
create or replace macro papers.generalization_robustness_at(split_on) as table
    with planes as (
        select
            g.*,
            m.parameters,
            case
                when m.parameters < 8e9 then 'at most 7B'
                when m.parameters >= 8e9 then 'larger'
            end as size_band,
            g.expected_next is not null and c.model is not null as is_compared,
            is_compared and not is_compressor(g.model) as is_ranked
        from main.train_test_gap_at(split_on) as g
        left join main.models as m on g.model = m.model
        left join internal.commonest_months as c
            on
                g.model = c.model
                and g.protocol = c.protocol
                and g.source is not distinct from c.source
    )

    select
        model,
        source,
        scope,
        protocol,
        parameters,
        size_band,
        split_date,
        split_basis,
        num_months_before,
        num_months_after,
        bits_per_byte_after,
        bits_per_byte_after_low,
        bits_per_byte_after_high,
        bits_per_byte_gap,
        bits_per_byte_gap_low,
        bits_per_byte_gap_high,
        expected_next,
        is_compared,
        case
            when is_ranked
                then rank() over (
                    partition by protocol, source, is_ranked order by expected_next
                )
        end as rank,
        case
            when is_ranked and size_band is not null
                then rank() over (
                    partition by protocol, source, is_ranked, size_band order by expected_next
                )
        end as rank_in_band,
        case
            when reason <> lacking_documents(null) then reason
            when not is_compared and source is null
                then 'no rank: other months or sources than the most common ones'
            when not is_compared then 'no rank: other months than the most common ones'
            when not is_ranked then 'no rank: a compressor'
            when size_band is null then 'no rank in a band: number of parameters unknown'
        end as reason
    from planes;
