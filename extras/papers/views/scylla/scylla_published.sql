-- The paper's scores (Table 2), with tidemark's scores of models with the same name.
-- Grain: one row per published_model, level, model, protocol.
-- Units: scores are -1 to 1. Names are compared in lower case, without the hub's organisation, and
--   by letters and digits only. tidemark's scores are for split ood, which has the paper's range.
--   NULL if tidemark has not asked the model. The paper's runs cannot be repeated: versions of
--   models, prompts and judging differ.
-- Source: Qi et al. 2024, Table 2.
create or replace view papers.scylla_published as
with printed as (
    select
        printed_model as published_model,
        cast(right(row_key, 1) as integer) as level,
        value as published_score,
        regexp_replace(lower(printed_model), '[^a-z0-9]', '', 'g') as name
    from main.published_figures
    where
        reference = 'Qi et al. 2024, arXiv 2410.01769'
        and printed_table = 'Table 2'
        and column_name = 'score'
        and unit_known
),

critical as (
    select
        printed_model as published_model,
        cast(value as integer) as published_critical_level
    from main.published_figures
    where
        reference = 'Qi et al. 2024, arXiv 2410.01769'
        and printed_table = 'Table 2'
        and column_name = 'critical_level'
        and unit_known
),

ours as (
    select
        *,
        regexp_replace(lower(regexp_extract(model, '[^/]*$')), '[^a-z0-9]', '', 'g') as name
    from papers.scylla_paper_scores
    where ood_split = 'ood'
)

select
    printed.published_model,
    printed.level,
    ours.model,
    ours.protocol,
    printed.published_score,
    ours.paper_score,
    ours.score,
    ours.paper_score - printed.published_score as difference,
    critical.published_critical_level,
    ours.paper_critical_level,
    ours.critical_level
from printed
inner join critical on printed.published_model = critical.published_model
left join ours on printed.name = ours.name and printed.level = ours.level;
