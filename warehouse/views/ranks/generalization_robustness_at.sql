-- Each model's place on the plane of generalization and robustness, with ranks.
-- Grain: one row per model, source, protocol; source NULL is the mean over sources of text.
-- Parameter: split_on, the first day that counts as after, the same for all models (Li et al. use
--   2023-01-01); NULL splits each after its own cutoff, and leaves out models without one.
-- Units: bits per byte. x is bits_per_byte_after, generalization; y is bits_per_byte_gap,
--   robustness; both are better where lower. Intervals are those of train_test_gap_at and
--   train_test_gap_overall_at.
-- Ranks are by expected_next, 1 is the lowest; rank_in_band is among models of at most 7B (below 8
--   billion parameters) or among larger ones. Only models scored on the same cells are ranked: for
--   each source (for the mean: over all cells of text) those with the set of months that most models
--   have, the larger set where two are as common; is_compared tells, and ranks are NULL elsewhere.
--   Split at their own cutoffs, models are compared over the same months, but divided otherwise.
-- Source: Li et al. 2024, Figure 2b, and Table 3 for ranks at most 7B and above; metrics.md, section 2.
-- Reads train_test_gap_at, train_test_gap_overall_at, monthly_loss, models.
create or replace macro generalization_robustness_at(split_on) as table
    with planes as (
        select
            p.*,
            m.parameters,
            case
                when m.parameters < 8e9 then 'at most 7B'
                when m.parameters >= 8e9 then 'larger'
            end as size_band
        from (
            select * from train_test_gap_at(split_on)
            union all by name
            select * from train_test_gap_overall_at(split_on)
        ) as p
        left join models as m on p.model = m.model
    ),

    cells as (
        select
            model,
            protocol,
            source,
            list(month order by month) as months,
            null as sources
        from monthly_loss
        where bits_per_byte is not null
        group by model, protocol, source
        union all
        select
            model,
            protocol,
            null as source,
            list(month order by source, month) as months,
            list(source order by source, month) as sources
        from monthly_loss
        where bits_per_byte is not null and is_text
        group by model, protocol
    ),

    commonest as (
        select
            c.protocol,
            c.source,
            c.months,
            c.sources
        from cells as c
        inner join planes as p
            on
                c.model = p.model
                and c.protocol = p.protocol
                and c.source is not distinct from p.source
        where p.expected_next is not null
        group by c.protocol, c.source, c.months, c.sources
        qualify
            row_number() over (
                partition by c.protocol, c.source
                order by count(*) desc, len(c.months) desc, c.months, c.sources
            ) = 1
    ),

    compared as (
        select
            c.model,
            c.protocol,
            c.source
        from cells as c
        inner join commonest as s
            on
                c.protocol = s.protocol
                and c.source is not distinct from s.source
                and c.months = s.months
                and c.sources is not distinct from s.sources
    )

    select 1;
