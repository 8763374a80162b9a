-- Tokens that a model writes for an answer, by level, and for right and wrong answers.
-- level_1: tokens of an answer at level 1 of complexity
-- level_2: tokens of an answer at level 2 of complexity
-- level_3: tokens of an answer at level 3 of complexity
-- level_4: tokens of an answer at level 4 of complexity
-- level_5: tokens of an answer at level 5 of complexity
-- mean_right: tokens of right answers, mean [tokens]
-- mean_wrong: tokens of wrong answers, mean [tokens]
-- num_puzzles: puzzles in the means [puzzles]
select
    model,
    protocol,
    avg(mean_tokens) filter (where level = 1) as level_1,
    avg(mean_tokens) filter (where level = 2) as level_2,
    avg(mean_tokens) filter (where level = 3) as level_3,
    avg(mean_tokens) filter (where level = 4) as level_4,
    avg(mean_tokens) filter (where level = 5) as level_5,
    avg(mean_tokens_right) as mean_right,
    avg(mean_tokens_wrong) as mean_wrong,
    count(*) as num_puzzles
from scylla_tokens
where split = 'ood' and num_counted > 0
group by model, protocol
order by model, protocol
