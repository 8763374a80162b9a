-- How far each model is above its level up to its own cutoff, by months since that cutoff;
-- compressors over the same months.
-- is_compressor: True for a compressor, which has no cutoff
-- is_newest: True in the last row of each curve
select
    r.model,
    m.family,
    r.months_after_cutoff,
    r.rise,
    r.num_sources,
    r.num_models,
    is_compressor(r.model) as is_compressor,
    r.months_after_cutoff = max(r.months_after_cutoff) over (partition by r.model) as is_newest
from rise_after_cutoff as r
left join models as m on r.model = m.model
where r.protocol = $protocol
order by is_compressor, r.model, r.months_after_cutoff
