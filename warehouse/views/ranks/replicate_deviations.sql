-- How far each bootstrap replicate of a month's bits per byte is from the figure itself.
-- Grain: one row per model, source, protocol, month, replicate (1 to 200). For other views to read:
--   lists of them, in the order of replicates, are what paired_error takes.
-- Months of a single cluster have none.
-- Units: bits per byte; 0 where a replicate drew no document of the month, which happens where
--   documents are of two or three clusters.
-- Source: metrics.md, section 5. Reads monthly_loss, cell_replicates.
create or replace view replicate_deviations as
select
    r.model,
    r.source,
    r.protocol,
    r.month,
    r.replicate,
    coalesce(r.nll_nats / (ln(2) * nullif(r.num_bytes, 0)) - l.bits_per_byte, 0) as deviation
from cell_replicates as r
inner join monthly_loss as l
    on
        r.model = l.model
        and r.source = l.source
        and r.protocol = l.protocol
        and r.month = l.month
where l.bits_per_byte is not null;
