-- The printed tables of the papers.
select
    reference,
    printed_table,
    count(*) as num_figures,
    count(distinct model) as num_models,
    string_agg(distinct column_name, ', ' order by column_name) as columns
from published_figures
group by reference, printed_table
order by reference, printed_table
