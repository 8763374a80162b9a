-- Every column of scylla_accuracy. Units and NULLs: see that view.
-- Grain: one row per model, puzzle, protocol, split, rules (strict or lenient).
create or replace view internal.scylla_accuracy_details as
with counted as (
    select
        model,
        puzzle,
        protocol,
        split,
        rules,
        count(*) filter (where status <> 'error') as num_items,
        count(*) filter (where status = 'error') as num_errors,
        count(*) filter (where status = 'correct') as num_correct,
        count(*) filter (where status = 'unparsed') as num_unparsed,
        count(*) filter (where status = 'truncated') as num_truncated,
        avg(num_tokens) as mean_tokens
    from internal.scylla_judged_answers
    group by model, puzzle, protocol, split, rules
),

expected as (
    select
        cells.*,
        splits.split,
        rules.rules
    from internal.scylla_cells as cells
    cross join (values ('id'), ('ood'), ('ood_near')) as splits (split)
    cross join (values ('strict'), ('lenient')) as rules (rules)
)

select
    expected.model,
    expected.puzzle,
    expected.protocol,
    expected.split,
    expected.rules,
    expected.status as cell_status,
    expected.level,
    coalesce(counted.num_items, 0) as num_items,
    coalesce(counted.num_errors, 0) as num_errors,
    coalesce(counted.num_correct, 0) as num_correct,
    coalesce(counted.num_unparsed, 0) as num_unparsed,
    coalesce(counted.num_truncated, 0) as num_truncated,
    counted.num_correct / nullif(counted.num_items, 0) as accuracy,
    wilson_low(counted.num_correct, counted.num_items) as accuracy_low,
    wilson_high(counted.num_correct, counted.num_items) as accuracy_high,
    (counted.num_items - counted.num_unparsed - counted.num_truncated)
    / nullif(counted.num_items, 0) as parse_rate,
    counted.mean_tokens,
    case
        when counted.num_items > 0 then null
        when counted.num_errors > 0 then 'all items have errors: ' || counted.num_errors
        when expected.status = 'insufficient_id_data' then 'too few inputs'
        else 'nothing was asked'
    end as reason
from expected
left join counted
    on
        expected.model = counted.model
        and expected.puzzle = counted.puzzle
        and expected.protocol = counted.protocol
        and expected.split = counted.split
        and expected.rules = counted.rules
where expected.split <> 'ood_near' or counted.split is not null;
