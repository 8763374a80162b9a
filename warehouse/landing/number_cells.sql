-- The incoming cells, numbered: a number is cheaper to group by than four names and a date.
-- A cell with losses of two revisions of its model has two numbers, until that is refused.
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
