-- Scoring records without a cell; milestones and classes of bytes without a scoring record.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.
with strays as (
    select
        costs.model,
        costs.source,
        costs.month,
        costs.protocol,
        'cell_costs' as found_in
    from cell_costs as costs
    anti join internal.landed_cells as cells
        on
            costs.model = cells.model
            and costs.revision = cells.revision
            and costs.source = cells.source
            and costs.month is not distinct from cells.month
            and costs.protocol = cells.protocol
    union all
    select
        m.model,
        m.source,
        m.month,
        m.protocol,
        'cell_milestones' as found_in
    from cell_milestones as m
    anti join cell_costs as costs
        on
            m.model = costs.model
            and m.source = costs.source
            and m.month is not distinct from costs.month
            and m.protocol = costs.protocol
    union all
    select
        b.model,
        b.source,
        b.month,
        b.protocol,
        'byte_class_losses' as found_in
    from byte_class_losses as b
    anti join cell_costs as costs
        on
            b.model = costs.model
            and b.source = costs.source
            and b.month is not distinct from costs.month
            and b.protocol = costs.protocol
)

select *
from strays;
