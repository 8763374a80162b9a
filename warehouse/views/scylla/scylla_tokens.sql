-- Tokens that a model writes for an answer, against its accuracy, by puzzle and complexity.
-- Grain: one row per model, puzzle, protocol, split.
-- Units: tokens are those of whole answers, with all reasoning; in a second pass, of both texts.
--   Right and wrong are by the strict rules. tokens_per_right is the sum of all tokens / number of
--   right answers. correlation is Pearson's, of tokens and correctness (1 or 0) over items; it is
--   positive if longer answers are right more often. Items with an error are left out. NULL: see
--   reason.
-- Source: Qi et al. 2024 (o1-mini's reasoning); docs/metrics.md (Puzzles).
create or replace view scylla_tokens as
with judged as (
    select
        model,
        puzzle,
        protocol,
        split,
        is_correct,
        num_tokens
    from internal.scylla_judged_answers
    where rules = 'strict' and is_correct is not null
),

counted as (
    select
        model,
        puzzle,
        protocol,
        split,
        avg(is_correct::integer) as accuracy,
        avg(num_tokens) as mean_tokens,
        median(num_tokens) as median_tokens,
        avg(num_tokens) filter (where is_correct) as mean_tokens_right,
        avg(num_tokens) filter (where not is_correct) as mean_tokens_wrong,
        sum(num_tokens) / nullif(count(num_tokens) filter (where is_correct), 0)
            as tokens_per_right,
        case
            when
                stddev_pop(num_tokens) > 0
                and stddev_pop(is_correct::integer) filter (where num_tokens is not null) > 0
                then corr(num_tokens, is_correct::integer)
        end as correlation,
        count(*) as num_items,
        count(num_tokens) as num_counted
    from judged
    group by model, puzzle, protocol, split
)

select
    counted.model,
    counted.puzzle,
    cells.complexity,
    counted.protocol,
    counted.split,
    counted.accuracy,
    counted.mean_tokens,
    counted.median_tokens,
    counted.mean_tokens_right,
    counted.mean_tokens_wrong,
    counted.tokens_per_right,
    counted.correlation,
    counted.num_items,
    counted.num_counted,
    cells.level,
    case
        when counted.num_counted = 0 then 'the model reports no tokens'
        when counted.mean_tokens_right is null then 'no right answer'
        when counted.mean_tokens_wrong is null then 'no wrong answer'
        when counted.correlation is null then 'all answers have equally many tokens'
    end as reason
from counted
inner join internal.scylla_cells as cells
    on
        counted.model = cells.model
        and counted.puzzle = cells.puzzle
        and counted.protocol = cells.protocol;
