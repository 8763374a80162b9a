-- The smallest gap that each source's volume can show, with six months on each side of a cutoff.
-- num_models: models in the median [models]
select
    source,
    median(detectable_gap) as detectable_gap,
    median(num_documents) as num_documents,
    count(*) as num_models
from detectable_gap_at(0)
where
    protocol = $protocol
    and num_months_each_side = 6
    and detectable_gap is not null
    and not is_compressor(model)
group by source
order by source
