-- Runs of months in which cells of a source are alike, and the models to which that applies.
-- state: there; without a loss (scored, but no loss counts); stale (scored on an older version of
-- the text); held back (no cell, and the newest crawl failed a check); missing (no cell, and other
-- models have the month).
-- state: there, missing, without a loss, stale (on an older version of the text) or held back
-- first_month: first month of these cells [date]
-- last_month: last month of these cells [date]
-- num_months: months of these cells [months]
-- num_models: models of these cells [models]
-- num_cells: cells: a month of a source under a model [cells]
-- models: names of the models
-- which: names of the models; all if every model
with held as (
    select unnest(from_json($held, '[{"source": "varchar", "month": "date"}]'), recursive := true)
),

landed as (
    select
        source,
        month,
        model,
        is_outdated as is_stale
    from scored_cells
    where protocol = $protocol
),

figures as (
    select
        model,
        source,
        month
    from monthly_loss
    where protocol = $protocol and bits_per_byte is not null
),

measured as (
    select distinct model
    from landed
),

months as (
    select
        source,
        month
    from landed
    union
    from held
),

placed as (
    select
        m.source,
        m.month,
        n.model,
        case
            when c.is_stale then 'stale'
            when c.model is not null and f.model is null and source_period(m.source) = 'month'
                then 'without a loss'
            when c.model is not null then 'there'
            when h.month is not null then 'held back'
            else 'missing'
        end as state,
        if(
            source_period(m.source) = 'month',
            year(m.month) * 12 + month(m.month),
            dense_rank() over (partition by m.source order by m.month)
        ) as place
    from months as m
    cross join measured as n
    left join landed as c on m.source = c.source and m.month = c.month and n.model = c.model
    left join figures as f on m.source = f.source and m.month = f.month and n.model = f.model
    left join held as h on m.source = h.source and m.month = h.month
),

numbered as (
    select
        *,
        place - row_number() over (partition by source, model, state order by month) as run
    from placed
),

runs as (
    select
        source,
        state,
        model,
        min(month) as first_month,
        max(month) as last_month,
        count(*) as num_months
    from numbered
    group by source, state, model, run
)

select
    source,
    state,
    first_month,
    last_month,
    num_months,
    count(*) as num_models,
    num_months * count(*) as num_cells,
    string_agg(model, ', ' order by model) as models,
    array_to_string(list(model order by model)[1:5], ', ')
    || if(count(*) > 5, ' and ' || (count(*) - 5) || ' more', '') as which
from runs
group by source, state, first_month, last_month, num_months
order by source, state = 'there', first_month, state
