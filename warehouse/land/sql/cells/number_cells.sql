-- The incoming cells with numbers: grouping by a number is cheaper than by four names and a date.
-- A cell with losses of two model revisions has two numbers; a later statement refuses the cell.
create or replace temp table incoming_cells as
with cells as (
    select distinct
        model,
        revision,
        source,
        month,
        protocol
    from incoming
)

select
    model,
    revision,
    source,
    month,
    protocol,
    cast(row_number() over (order by model, source, month, protocol, revision) as integer) as cell
from cells;
