-- Level of each model of the board on each source, over the months of the board; the board's level
-- is the mean of these.
-- num_months: months in the mean [months]
select
    model,
    source,
    avg(bits_per_byte) as bits_per_byte,
    count(*) as num_months
from compared_cells
where is_ranked or is_compressor(model)
group by model, source
order by model, source
