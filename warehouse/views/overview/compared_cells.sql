-- The models that view headline compares, with the cells of the same documents that all of them
--   have.
-- Grain: one row per model, source, month. For other views to read.
-- A model with few cells would reduce the common cells of all models, possibly to none. So only the
--   most complete models are compared. Candidates are the sets "all models with at least k cells".
--   The chosen set maximises (models - 1) x (common cells); on a tie, the larger set. A cell is
--   common if all models measured the same documents (equal fingerprints).
-- Compressors do not influence the choice: they are compared if they have all common cells of the
--   models. If there are only compressors, they count as models.
-- Units: bits per byte; num_unmeasured: chunks.
-- Source: docs/metrics.md (Headline).
create or replace view internal.compared_cells as
with eligible as materialized (
    select * from internal.eligible_cells
),

cells as materialized (
    select
        *,
        starts_with(model, 'control:')
        and (select bool_or(not starts_with(e.model, 'control:')) from eligible as e)
            as is_follower
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

chosen as (
    select
        num_models,
        count(*) as num_cells
    from common_cells
    group by num_models
    order by (num_models - 1) * count(*) desc, num_models desc
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
    select model
    from candidates
    group by model
    having count(*) = any_value(num_cells)
)

select
    model,
    source,
    month,
    num_unmeasured,
    bits_per_byte,
    fingerprint
from candidates
semi join complete_models on candidates.model = complete_models.model;
