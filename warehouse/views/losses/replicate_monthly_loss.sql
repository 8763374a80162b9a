-- Bits per byte of each month, as it is (replicate 0) and in 200 bootstrap replicates.
-- Grain: one row per model, source, protocol, month, replicate. For other views to read.
-- Units: bits per UTF-8 byte; NULL where a replicate drew no document of the month.
-- Source: metrics.md, section 5. Reads monthly_loss and cell_replicates.
create or replace view replicate_monthly_loss as
select
    model,
    source,
    protocol,
    month,
    cast(0 as smallint) as replicate,
    bits_per_byte
from monthly_loss
union all
select
    model,
    source,
    protocol,
    month,
    replicate,
    nll_nats / (ln(2) * nullif(num_bytes, 0)) as bits_per_byte
from cell_replicates
where month is not null;
