-- The paper's scores as printed.
-- level_1: score as printed at level 1 of complexity
-- level_2: score as printed at level 2 of complexity
-- level_3: score as printed at level 3 of complexity
-- level_4: score as printed at level 4 of complexity
-- level_5: score as printed at level 5 of complexity
select
    printed_model as model,
    cast(any_value(value) filter (column_name = 'critical_level') as integer) as critical_level,
    max(value) filter (column_name = 'score' and row_key[-1] = '1') as level_1,
    max(value) filter (column_name = 'score' and row_key[-1] = '2') as level_2,
    max(value) filter (column_name = 'score' and row_key[-1] = '3') as level_3,
    max(value) filter (column_name = 'score' and row_key[-1] = '4') as level_4,
    max(value) filter (column_name = 'score' and row_key[-1] = '5') as level_5
from main.published_figures
where
    reference = 'Qi et al. 2024, arXiv 2410.01769'
    and printed_table = 'Table 2'
    and column_name in ('score', 'critical_level')
    and unit_known
group by printed_model
order by avg(value) filter (column_name = 'score') desc, model
