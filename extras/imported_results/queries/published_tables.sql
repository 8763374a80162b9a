-- The printed tables of the papers.
-- num_figures: printed figures [figures]
-- num_models: models with a figure [models]
-- columns: names of its columns
select
    reference,
    printed_table,
    count(*) as num_figures,
    count(distinct printed_model) as num_models,
    string_agg(distinct column_name, ', ' order by column_name) as columns
from published_figures
group by reference, printed_table
order by reference, printed_table
