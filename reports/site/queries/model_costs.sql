-- What scoring took, by device.
-- peak_memory_gb: largest memory of the device, 10^9 bytes [GB]
-- energy_kwh: energy of the device, if it was measured [kWh]
select
    model,
    device,
    dtype,
    num_cells,
    seconds,
    num_tokens,
    tokens_per_second,
    peak_memory_bytes / 1e9 as peak_memory_gb,
    energy_joules / 3.6e6 as energy_kwh,
    last_scored_at
from run_costs
where protocol = $protocol
order by model, device
