-- Benefit and cost of longer contexts and overlapping windows: compression, time and memory.
-- Grain: one row per model, source, protocol; only over the months (or the undated corpus) that all
--   protocols of the model have measured on this source, so that rows are comparable.
-- Units: as the names say. bits_per_byte is the unweighted mean over cells. seconds are wall-clock
--   time; speeds and seconds_per_megabyte (10^6 bytes) are ratios of sums. Costs are NULL unless
--   every cell has a record; context, device and dtype also if cells differ. context is the window
--   in the cells' records: the protocol's, or the model's if that is shorter.
-- A cell with a loss that is not finite does not count, as in monthly_loss.
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
