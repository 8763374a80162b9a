-- The smallest gap that each source's volume can show.
-- num_models: models in the median [models]
select
    source,
    median(detectable_gap) as detectable_gap,
    median(num_documents) as num_documents,
    count(*) as num_models
from detectable_gap
where protocol = $protocol and detectable_gap is not null and model not like 'control:%'
group by source
order by source
