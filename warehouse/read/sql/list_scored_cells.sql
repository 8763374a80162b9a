-- The cells scored by tidemark, without imported cells.
-- Input: cells_to_list, the table landed_cells.
select
    model,
    revision,
    source,
    month,
    protocol,
    partition_digest,
    partition_version,
    scoring
from cells_to_list
where partition_digest is not null and scoring is not null
order by model, source, month, protocol;
