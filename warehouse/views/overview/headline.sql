-- One figure a model: bits per byte of text under the default protocol, and the rank by it.
-- Grain: one row per model that is compared.
-- Units: bits_per_byte is the unweighted mean over sources of the unweighted mean over months, only
--   over the (source, month) cells that all compared models have; num_months are those in any
--   source. What is left out: eligible_cells; who is compared: compared_cells.
-- Source: metrics.md, sections 1 and 2; the mean over sources is Uncheatable Eval's.
-- Reads compared_cells, models.
create or replace view headline as
with cells as materialized (
    select * from compared_cells
),

source_means as (
    select
        model,
        source,
        sum(num_unmeasured) as num_unmeasured,
        avg(bits_per_byte) as bits_per_byte
    from cells
    group by model, source
),

figures as (
    select
        model,
        count(*) as num_sources,
        cast(sum(num_unmeasured) as bigint) as num_unmeasured,
        avg(bits_per_byte) as bits_per_byte
    from source_means
    group by model
)

select
    f.model,
    f.bits_per_byte,
    f.bits_per_byte / 8 as compression_rate,
    rank() over (order by f.bits_per_byte) as rank,
    f.num_sources,
    (select count(distinct month) from cells) as num_months,
    f.num_unmeasured,
    m.cutoff
from figures as f
left join models as m on f.model = m.model;
