-- The cells shared by all models of a protocol that are ranked by a mean over sources.
-- Grain: one row per protocol, model, source, month. For other views to read.
-- Parameter: left_out, a list of sources that do not count; [] or NULL leaves out none.
-- Only text, and no compressors. A model with few cells would reduce the common cells of all
--   models, possibly to none. So only the most complete models are ranked, as in compared_cells.
--   Candidates are the sets "all models with at least k cells"; the chosen set maximises
--   (models - 1) x (common cells); on a tie, the larger set. The view has the cells that all ranked
--   models have.
-- A cell on other documents than most models has its figure of shared_figures.
-- num_models: number of ranked models. Units: as monthly_loss; degrees_of_freedom are for an
--   interval (ADR 0016).
-- Source: docs/metrics.md (Likelihood).
create or replace macro internal.comparable_cells_at(left_out) as table
    with cells as materialized (
        select
            l.protocol,
            l.model,
            l.source,
            l.month,
            coalesce(s.bits_per_byte, l.bits_per_byte) as bits_per_byte,
            e.standard_error,
            e.degrees_of_freedom
        from internal.monthly_loss_details as l
        left join internal.shared_figures as s
            on
                l.model = s.model
                and l.source = s.source
                and l.protocol = s.protocol
                and l.month = s.month
        left join internal.pooled_errors as e
            on
                l.model = e.model
                and l.source = e.source
                and l.protocol = e.protocol
                and l.month = e.month
        where
            l.bits_per_byte is not null
            and l.is_text
            and not is_compressor(l.model)
            and not coalesce(list_contains(cast(left_out as varchar[]), l.source), false)
    ),

    -- num_models: number of models with at least as many cells; it identifies their set.
    model_sizes as materialized (
        select
            protocol,
            model,
            count(*) over (partition by protocol order by count(*) desc) as num_models
        from cells
        group by protocol, model
    ),

    sets as (
        select
            protocol,
            num_models
        from model_sizes
        group by protocol, num_models
    ),

    common_cells as materialized (
        select
            sets.protocol,
            sets.num_models,
            cells.source,
            cells.month
        from sets
        inner join model_sizes as members
            on sets.protocol = members.protocol and sets.num_models >= members.num_models
        inner join cells on members.protocol = cells.protocol and members.model = cells.model
        group by sets.protocol, sets.num_models, cells.source, cells.month
        having count(*) = sets.num_models
    ),

    chosen as (
        select
            protocol,
            num_models
        from common_cells
        group by protocol, num_models
        qualify
            row_number() over (
                partition by protocol
                order by (num_models - 1) * count(*) desc, num_models desc
            ) = 1
    )

    select
        cells.protocol,
        cells.model,
        cells.source,
        cells.month,
        cells.bits_per_byte,
        cells.standard_error,
        cells.degrees_of_freedom,
        chosen.num_models
    from cells
    inner join model_sizes
        on cells.protocol = model_sizes.protocol and cells.model = model_sizes.model
    inner join chosen
        on
            model_sizes.protocol = chosen.protocol
            and model_sizes.num_models <= chosen.num_models
    semi join common_cells
        on
            chosen.protocol = common_cells.protocol
            and chosen.num_models = common_cells.num_models
            and cells.source = common_cells.source
            and cells.month = common_cells.month;
