-- Figures of models by source, by category of sources and over all of them, in one long table.
-- Grain: one row per model, protocol, scope, source, category, figure, milestone.
-- scope says what a figure is of: a source; a category (the unweighted mean over its sources of
--   text); all (the unweighted mean over all sources of text). Such a mean is over the sources that
--   at least half of the models have the figure on; models that lack one of these have no row.
--   Months are each model's own; headline is of cells that all compared models have.
-- Units: by figure, as in source_figures; headline in bits per byte.
-- Source: metrics.md, sections 1 and 2. Reads source_figures, sources, headline.
create or replace view model_figures as
with figures as materialized (
    select * from source_figures
),

-- Each figure on text counts for its category and for the mean over all sources.
scoped as materialized (
    select
        f.*,
        'category' as scope,
        s.category
    from figures as f
    inner join sources as s on f.source = s.source
    where f.is_text and s.category is not null
    union all
    select
        *,
        'all' as scope,
        '' as category
    from figures
    where is_text
),

num_models as (
    select
        protocol,
        scope,
        category,
        figure,
        milestone,
        count(distinct model) as num_models
    from scoped
    group by protocol, scope, category, figure, milestone
),

common_sources as (
    select
        s.protocol,
        s.scope,
        s.category,
        s.figure,
        s.milestone,
        s.source,
        count(*) over (partition by s.protocol, s.scope, s.category, s.figure, s.milestone)
            as num_sources
    from scoped as s
    inner join num_models as n using (protocol, scope, category, figure, milestone)
    group by s.protocol, s.scope, s.category, s.figure, s.milestone, s.source
    having 2 * count(*) >= any_value(n.num_models)
),

means as (
    select
        s.model,
        s.protocol,
        s.scope,
        s.category,
        s.figure,
        s.milestone,
        avg(s.value) as value
    from scoped as s
    inner join common_sources as c using (protocol, scope, category, figure, milestone, source)
    group by s.model, s.protocol, s.scope, s.category, s.figure, s.milestone
    having count(*) = any_value(c.num_sources)
)

select
    model,
    protocol,
    'source' as scope,
    source,
    cast(null as varchar) as category,
    figure,
    nullif(milestone, 0) as milestone,
    value
from figures
union all by name
select * replace (nullif(category, '') as category, nullif(milestone, 0) as milestone)
from means
union all by name
select
    model,
    'default' as protocol,
    'all' as scope,
    'headline' as figure,
    bits_per_byte as value
from headline;
