-- The models that headline compares, and the cells that all of them have.
-- Grain: one row per model, source, month. For other views to read.
-- A model with few cells would shrink what all have in common, down to nothing. So the compared
--   models are the most complete ones: of the sets "all models with at least k cells" the one that
--   gives most comparisons, (models - 1) x (cells in common); where two give as many, the larger.
-- Units: bits per byte; num_unmeasured are chunks.
-- Source: metrics.md, section 1. Reads eligible_cells.
create or replace view compared_cells as
with cells as materialized (
    select * from eligible_cells
),

-- num_models: how many have at least as many cells. It names the set of them.
model_sizes as materialized (
    select
        model,
        count(*) over (order by count(*) desc) as num_models
    from cells
    group by model
),

common_cells as materialized (
    select
        sets.num_models,
        cells.source,
        cells.month
    from (select distinct num_models from model_sizes) as sets
    inner join model_sizes as members on sets.num_models >= members.num_models
    inner join cells on members.model = cells.model
    group by sets.num_models, cells.source, cells.month
    having count(*) = sets.num_models
),

chosen as (
    select num_models
    from common_cells
    group by num_models
    order by (num_models - 1) * count(*) desc, num_models desc
    limit 1
)

select cells.*
from cells
inner join model_sizes on cells.model = model_sizes.model
inner join chosen on model_sizes.num_models <= chosen.num_models
semi join common_cells
    on
        chosen.num_models = common_cells.num_models
        and cells.source = common_cells.source
        and cells.month = common_cells.month;
