-- What longer contexts and overlapping windows bring, and what they cost: rate, time, memory.
-- Grain: one row per model, source, protocol; only over the months (or the undated corpus) that all
--   of the model's protocols have measured on this source, so that its rows compare.
-- Units: as the names say. bits_per_byte is the unweighted mean of the cells' figures; seconds are
--   wall clock; speeds and seconds_per_megabyte (10^6 bytes) are sums over sums. What scoring took
--   is NULL unless every cell has a record; context, device and dtype also where cells differ.
--   context is what the cells' records say: the protocol's, or the model's where that is shorter.
-- A cell with a loss that is not finite is not measured, as in monthly_loss.
-- Source: Li et al. 2024, arXiv 2402.00861, Table 5.
-- Further columns: internal.context_comparison_details.
create or replace view context_comparison as
select
    model,
    source,
    protocol,
    bits_per_byte,
    compression_rate,
    context,
    stride,
    num_cells,
    num_tokens,
    num_bytes,
    seconds,
    tokens_per_second,
    tokens_read_per_second,
    seconds_per_megabyte,
    peak_memory_bytes,
    device
from internal.context_comparison_details;
