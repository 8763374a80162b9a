-- Li et al. 2024, Table 3: rates of 2023 against their change, by text.
-- corpus: text that was compressed
-- rate_2023: size of the compressed text of 2023 [% of the text]
-- rate_2017_2023: size of the compressed text of all months [% of the text]
-- change: rate of 2023 less that of 2017 to 2022, as printed [percentage points]
select
    printed_model as model,
    row_key as corpus,
    max(value) filter (column_name = 'rate_2023') as rate_2023,
    max(value) filter (column_name = 'rate_2017_2023') as rate_2017_2023,
    max(value) filter (column_name = 'rate_2023_less_2017_2022') as change
from published_figures
where
    reference like 'Li et al. 2024%' and printed_table = 'Table 3'
    and row_key not in ('Audio', 'Image') and printed_model not in ('FLAC', 'PNG')
group by printed_model, row_key
having rate_2023 is not null and change is not null
order by corpus, rate_2023, model
