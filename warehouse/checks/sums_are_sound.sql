-- Sums of a cell (replicates, milestones, byte classes, costs) that are negative, infinite or NaN.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.
with sums as (
    select
        'cell_replicates' as found_in,
        model,
        source,
        month,
        protocol,
        nll_nats as value
    from internal.cell_replicates
    union all
    select
        'cell_replicates' as found_in,
        model,
        source,
        month,
        protocol,
        num_bytes as value
    from internal.cell_replicates
    union all
    select
        'cell_milestones' as found_in,
        model,
        source,
        month,
        protocol,
        nll_nats as value
    from cell_milestones
    union all
    select
        'byte_class_losses' as found_in,
        model,
        source,
        month,
        protocol,
        nll_nats as value
    from byte_class_losses
    union all
    select
        'cell_costs' as found_in,
        model,
        source,
        month,
        protocol,
        seconds as value
    from cell_costs
)

select *
from sums
where value < 0 or not isfinite(value);
