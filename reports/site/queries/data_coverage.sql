-- Which losses of each model exist, summed over sources.
-- num_sources: sources on which the model was scored [sources]
select
    model,
    count(*) as num_sources,
    min(first_month) as first_month,
    max(last_month) as last_month,
    cast(sum(num_months) as bigint) as num_months,
    cast(sum(num_missing_months) as bigint) as num_missing_months,
    cast(sum(num_documents) as bigint) as num_documents,
    cast(sum(num_unmeasured) as bigint) as num_unmeasured,
    cast(sum(num_outdated_cells) as bigint) as num_outdated_cells,
    cast(sum(num_suspect_cells) as bigint) as num_suspect_cells
from coverage
where protocol = $protocol
group by model
order by model like 'control:%', model
