-- Monthly figures of a model, with their periods before and after its release. For
--   decay_figures.
-- Grain: one row per model, source, protocol, month; only models with a release date in the
--   catalogue.
-- Units: as monthly_loss; spread as in split_cells_at. horizon: 0 for the six months before the
--   month of release. 3, 6, 9 or 12: three months each, from the month of release on. NULL for
--   other months, and if a month of the period is missing. is_base: one of the six months, whether
--   or not the others are there.
-- Source: Zhu et al. (FreshBench), Tables 9, 11, 12; docs/metrics.md (Time).
create or replace view internal.decay_cells as
with points as (
    select
        l.model,
        l.source,
        l.protocol,
        l.month,
        m.released,
        l.bits_per_byte,
        e.standard_error,
        power(e.standard_error, 4) / e.degrees_of_freedom as spread,
        date_diff('month', date_trunc('month', m.released), l.month) as months_after
    from internal.monthly_loss_details as l
    inner join main.models as m on l.model = m.model
    left join internal.pooled_errors as e
        on
            l.model = e.model
            and l.source = e.source
            and l.protocol = e.protocol
            and l.month = e.month
    where m.released is not null and l.bits_per_byte is not null
),

periods as (
    select
        *,
        case
            when months_after between -6 and -1 then 0
            when months_after between 0 and 11 then 3 + months_after // 3 * 3
        end as period
    from points
)

select
    model,
    source,
    protocol,
    month,
    released,
    bits_per_byte,
    standard_error,
    spread,
    case
        when
            count(*) over (partition by model, source, protocol, period)
            = case when period = 0 then 6 else 3 end
            then period
    end as horizon,
    coalesce(period = 0, false) as is_base
from periods;
