-- Monthly figures with their coefficients in a slope over months. For tbi_likelihood.
-- Grain: one row per model, scope, protocol, source, month. scope is the source, or NULL for the
--   mean over sources: the sources of lasting_sources, and only their common months.
-- Units: x is the number of months since the scope's mean month. coefficient is the weight of the
--   cell's bits per byte in the slope; NULL with a single month. spread: as in split_cells_at.
-- Source: docs/metrics.md (Likelihood, Time).
create or replace view internal.slope_cells as
with points as (
    select
        l.model,
        l.protocol,
        l.source,
        l.month,
        year(l.month) * 12 + month(l.month) as month_number,
        l.bits_per_byte,
        e.standard_error,
        power(e.standard_error, 4) / e.degrees_of_freedom as spread
    from internal.monthly_loss_details as l
    left join internal.pooled_errors as e
        on
            l.model = e.model
            and l.source = e.source
            and l.protocol = e.protocol
            and l.month = e.month
    where l.bits_per_byte is not null
),

num_lasting as (
    select
        model,
        protocol,
        count(*) as num_sources
    from internal.lasting_sources
    group by model, protocol
),

lasting as (
    select p.*
    from points as p
    semi join internal.lasting_sources as l
        on p.model = l.model and p.protocol = l.protocol and p.source = l.source
),

common_months as (
    select
        p.model,
        p.protocol,
        p.month
    from lasting as p
    inner join num_lasting as n on p.model = n.model and p.protocol = n.protocol
    group by p.model, p.protocol, p.month
    having count(*) = any_value(n.num_sources)
),

scoped as (
    select
        p.*,
        p.source as scope
    from points as p
    union all by name
    select
        p.*,
        null as scope
    from lasting as p
    semi join common_months as c
        on p.model = c.model and p.protocol = c.protocol and p.month = c.month
),

centred as (
    select
        *,
        month_number - avg(month_number) over (partition by model, protocol, scope) as x
    from scoped
)

select
    model,
    scope,
    protocol,
    source,
    month,
    month_number,
    x,
    bits_per_byte,
    standard_error,
    spread,
    -- All sources of a scope have the same months, so the mean's slope is the mean of slopes.
    x / nullif(sum(x * x) over (partition by model, protocol, scope), 0) as coefficient
from centred;
