-- What longer contexts gain and cost: models that were scored under several protocols.
-- peak_memory_gb: largest memory of the device, 10^9 bytes [GB]
select
    model,
    source,
    protocol,
    context,
    stride,
    bits_per_byte,
    seconds_per_megabyte,
    peak_memory_bytes / 1e9 as peak_memory_gb,
    num_cells
from context_comparison
qualify count(*) over (partition by model, source) > 1
order by model, source, context, protocol
