-- The models that headline_at compares in a window of months, with the cells of the same documents
--   that all of them have.
-- Grain: one row per model, source, month. For other views to read.
-- Parameters: first_month and last_month, NULL: without a limit. months: 'new' counts only text
--   that is new to a model (training_ends); 'all' counts text seen in training, too.
-- is_ranked: of a compared model whose training is known to end. If nothing is known of any, and
--   with 'all', of each model. Compressors are never ranked.
-- A model with few cells would reduce the common cells of all models, possibly to none. So only the
--   most complete models are compared. Candidates are the sets "all models with at least k cells".
--   The chosen set maximises (models - 1) x (common cells), of which a source counts at most six
--   months; on a tie, the larger set. So a model whose training ends late is left out if the others
--   would lose too much by it. A cell is common if all models measured the same documents (equal
--   fingerprints).
-- Compressors do not influence the choice: they are compared if they have all common cells of the
--   models. If there are only compressors, they count as models.
-- basis: 'after' the latest month that a ranked model may have been trained on, or what is lacking.
-- Units: bits per byte; num_unmeasured: chunks.
-- Source: docs/metrics.md (Headline, New text).
create or replace macro internal.compared_cells_at(first_month, last_month, months) as table
    with eligible as materialized (
        select
            * exclude (is_new),
            is_compressor(model) as is_control,
            months = 'new' and is_new is null as is_unknown
        from internal.eligible_cells
        where
            (first_month is null or month >= first_month)
            and (last_month is null or month <= last_month)
            and (months = 'all' or coalesce(is_new, true))
    ),

    cells as materialized (
        select
            *,
            is_control and (select bool_or(not e.is_control) from eligible as e) as is_follower
        from eligible
    ),

    sizes as materialized (
        select
            model,
            count(*) as num_cells
        from cells
        where not is_follower
        group by model
    ),

    -- num_models: number of models with at least as many cells; it identifies their set.
    -- No window functions: in DuckDB 1.5.5, they sometimes fail on the small tables of a lake.
    model_sizes as materialized (
        select
            s.model,
            count(*) as num_models
        from sizes as s
        inner join sizes as o on s.num_cells <= o.num_cells
        group by s.model
    ),

    common_cells as materialized (
        select
            sets.num_models,
            cells.source,
            cells.month,
            min(cells.fingerprint) as fingerprint
        from (select distinct num_models from model_sizes) as sets
        inner join model_sizes as members on sets.num_models >= members.num_models
        inner join cells on members.model = cells.model
        group by sets.num_models, cells.source, cells.month
        having count(*) = sets.num_models and min(cells.fingerprint) = max(cells.fingerprint)
    ),

    common_sources as (
        select
            num_models,
            count(*) as num_cells
        from common_cells
        group by num_models, source
    ),

    chosen as (
        select
            num_models,
            sum(num_cells) as num_cells
        from common_sources
        group by num_models
        order by (num_models - 1) * sum(least(num_cells, 6)) desc, num_models desc
        limit 1
    ),

    candidates as materialized (
        select
            cells.*,
            chosen.num_cells
        from cells
        left join model_sizes on cells.model = model_sizes.model
        inner join chosen on cells.is_follower or model_sizes.num_models <= chosen.num_models
        semi join common_cells
            on
                chosen.num_models = common_cells.num_models
                and cells.source = common_cells.source
                and cells.month = common_cells.month
                and cells.fingerprint = common_cells.fingerprint
    ),

    complete_models as (
        select
            model,
            any_value(not is_control and not is_unknown) as is_known
        from candidates
        group by model
        having count(*) = any_value(num_cells)
    ),

    known as (
        select
            coalesce(bool_or(m.is_known), false) as is_any,
            max(t.last_month) filter (where m.is_known) as last_seen
        from complete_models as m
        left join main.training_ends as t on m.model = t.model
    )

    select
        candidates.model,
        candidates.source,
        candidates.month,
        candidates.num_unmeasured,
        candidates.bits_per_byte,
        candidates.fingerprint,
        not candidates.is_control and (not candidates.is_unknown or not known.is_any) as is_ranked,
        case
            when months = 'all' then 'all months, also those seen in training'
            when candidates.is_unknown then 'cutoff unknown: months may have been seen in training'
            when known.is_any then 'after ' || strftime(known.last_seen, '%Y-%m')
            else 'never trained'
        end as basis
    from candidates
    semi join complete_models on candidates.model = complete_models.model
    cross join known;
