-- The cells that tidemark has scored itself.
select
    model,
    revision,
    source,
    month,
    protocol,
    partition_digest,
    partition_version,
    scoring
from landed_cells
where partition_digest is not null and scoring is not null
order by model, source, month, protocol;
