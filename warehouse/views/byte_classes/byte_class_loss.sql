-- Losses of each model by class of byte and month.
-- Grain: one row per model, source, protocol, month, byte_class; only classes that the month has.
--   Undated text, half-months, weeks, and cells with a loss that is not finite are left out.
-- Units: bits_per_byte is of the bytes of the class; NULL for no_text, tokens without bytes. Each
--   byte of a token has an equal share of its loss.
-- share_of_bytes and share_of_loss are fractions of the month's bytes and of its loss.
-- Source: docs/metrics.md (Losses by class of byte).
create or replace view byte_class_loss as
select
    model,
    source,
    protocol,
    month,
    byte_class,
    nll_nats / (ln(2) * nullif(num_bytes, 0)) as bits_per_byte,
    share_of_bytes,
    nll_nats / nullif(sum(nll_nats) over (partition by model, source, protocol, month), 0)
        as share_of_loss,
    nll_nats,
    num_bytes
from internal.byte_class_cells
qualify nll_nats > 0 or num_bytes > 0;
