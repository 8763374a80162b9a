-- Figures of models by source, by category of sources and over all sources, in one long table.
-- Grain: one row per model, protocol, scope, source, category, figure, milestone.
-- scope: source; category (unweighted mean over its sources of text); all (mean over all sources of
--   text). A mean leaves out a source if another source has the figure of more than twice as many
--   models. It leaves out models that lack a remaining source. Except in headline, months differ by
--   model.
-- Units: by figure, as in source_figures; headline in bits per byte.
-- Source: docs/metrics.md (Time).
create or replace view internal.model_figures as
with figures as materialized (
    select * from internal.source_figures
),

-- Each figure on text counts for its category and (category NULL) for the mean over all sources.
scoped as materialized (
    select
        f.model,
        f.protocol,
        f.source,
        f.figure,
        f.milestone,
        f.value,
        unnest(['', nullif(s.category, '')]) as category
    from figures as f
    left join main.sources as s on f.source = s.source
    where f.is_text
),

common_sources as (
    select
        protocol,
        category,
        figure,
        milestone,
        source
    from scoped
    where category is not null
    group by protocol, category, figure, milestone, source
    qualify
        2 * count(*) >= max(count(*)) over (partition by protocol, category, figure, milestone)
),

wanted as (
    select
        *,
        count(*) over (partition by protocol, category, figure, milestone) as num_sources
    from common_sources
),

means as (
    select
        s.model,
        s.protocol,
        s.category,
        s.figure,
        s.milestone,
        avg(s.value) as value
    from scoped as s
    inner join wanted as w
        on
            s.protocol = w.protocol
            and s.category = w.category
            and s.figure = w.figure
            and s.milestone = w.milestone
            and s.source = w.source
    group by s.model, s.protocol, s.category, s.figure, s.milestone
    having count(*) = any_value(w.num_sources)
)

select
    model,
    protocol,
    'source' as scope,
    source,
    null as category,
    figure,
    nullif(milestone, 0) as milestone,
    value
from figures
union all
select
    model,
    protocol,
    case when category = '' then 'all' else 'category' end as scope,
    null as source,
    nullif(category, '') as category,
    figure,
    nullif(milestone, 0) as milestone,
    value
from means
union all
select
    model,
    'default' as protocol,
    'all' as scope,
    null as source,
    null as category,
    'headline' as figure,
    null as milestone,
    bits_per_byte as value
from main.headline;
