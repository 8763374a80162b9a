-- Bootstrap replicates that a cell has twice, or whose number is not one of 1 to 200: intervals
-- would be too narrow.
-- Do: Delete the writer's database (work/writer.duckdb) and run `tidemark score` again: what is
--   scored only lands. Land files from elsewhere again, too.
select
    model,
    source,
    month,
    protocol,
    count(*) as num_replicates,
    count(distinct replicate) as num_different,
    min(replicate) as least,
    max(replicate) as largest
from cell_replicates
group by model, source, month, protocol
having count(*) <> count(distinct replicate) or min(replicate) < 1 or max(replicate) > 200
order by model, source, month, protocol;
