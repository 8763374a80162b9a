-- Bits per byte of each month (replicate 0), and of 200 bootstrap replicates of each month.
-- Grain: one row per model, source, protocol, month, replicate. For other views to read.
-- Months without a figure in monthly_loss are left out. Months with a single cluster have only
--   replicate 0: resampling one cluster says nothing. A mean over months has an interval only if
--   all its months have replicates.
-- Units: bits per UTF-8 byte; NULL if a replicate drew no document of the month.
-- Source: docs/metrics.md (Intervals).
create or replace view internal.replicate_monthly_loss as
with figures as (
    select
        model,
        source,
        protocol,
        month,
        is_text,
        bits_per_byte
    from internal.period_loss
    where bits_per_byte is not null
)

select
    model,
    source,
    protocol,
    month,
    cast(0 as smallint) as replicate,
    is_text,
    bits_per_byte
from figures
union all
select
    r.model,
    r.source,
    r.protocol,
    r.month,
    r.replicate,
    f.is_text,
    r.nll_nats / (ln(2) * nullif(r.num_bytes, 0)) as bits_per_byte
from internal.cell_replicates as r
inner join figures as f
    on
        r.model = f.model
        and r.source = f.source
        and r.protocol = f.protocol
        and r.month = f.month;
