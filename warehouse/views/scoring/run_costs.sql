-- Time, speed, memory and energy of scoring.
-- Grain: one row per model, protocol, device, dtype. Only cells with a cost record.
--   Cells that were copied from a model of the same weights are left out: no pass was run for them.
-- Units: as the names say. num_tokens are the scored tokens of measured chunks; num_tokens_read are
--   the tokens given to the model, context included. Speeds are ratios of sums, per wall-clock
--   second. energy_joules is NULL unless every cell has it: a partial sum would be misleading.
--   share_of_peak: 2 operations per active parameter and token read, as a share of the measured
--   rate of matrix products; NULL unless every cell has both. It omits attention. It counts the
--   output layer for context tokens, too, which is not computed for them.
--   joules_per_million_tokens counts tokens read.
-- Source: reads cell_costs and landed_cells.
create or replace view run_costs as
with runs as (
    select
        c.model,
        c.protocol,
        c.device,
        c.dtype,
        count(*) as num_cells,
        min(c.scored_at) as first_scored_at,
        max(c.scored_at) as last_scored_at,
        sum(c.seconds) as seconds,
        cast(coalesce(sum(cells.num_tokens), 0) as bigint) as num_tokens,
        cast(sum(c.num_tokens_read) as bigint) as num_tokens_read,
        max(c.peak_memory_bytes) as peak_memory_bytes,
        case when count(c.energy_joules) = count(*) then sum(c.energy_joules) end as energy_joules,
        case
            when count(c.active_parameters * c.matmul_flops) = count(*)
                then
                    sum(2.0 * c.active_parameters * c.num_tokens_read)
                    / nullif(sum(c.seconds * c.matmul_flops), 0)
        end as share_of_peak
    from cell_costs as c
    inner join internal.landed_cells as cells
        on
            c.model = cells.model
            and c.source = cells.source
            and c.month is not distinct from cells.month
            and c.protocol = cells.protocol
    where c.copied_from is null
    group by c.model, c.protocol, c.device, c.dtype
)

select
    model,
    protocol,
    device,
    dtype,
    num_cells,
    first_scored_at,
    last_scored_at,
    seconds,
    num_tokens,
    num_tokens_read,
    num_tokens / nullif(seconds, 0) as tokens_per_second,
    num_tokens_read / nullif(seconds, 0) as tokens_read_per_second,
    peak_memory_bytes,
    energy_joules,
    1e6 * energy_joules / nullif(num_tokens_read, 0) as joules_per_million_tokens,
    share_of_peak
from runs;
