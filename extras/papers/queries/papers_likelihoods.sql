-- Probability of right answers on a model's own inputs and on others, mean over puzzles.
-- id_probability: of a token of the right answer, on the model's own inputs; geometric mean
--   [probability]
-- ood_probability: of a token of the right answer, on other inputs; geometric mean [probability]
-- num_puzzles: puzzles in the means [puzzles]
with both_splits as (
    select
        model,
        protocol,
        avg(probability) filter (where split = 'id') as id_probability,
        avg(probability) filter (where split = 'ood') as ood_probability,
        count(probability) filter (where split = 'ood') as num_puzzles
    from papers.scylla_likelihood
    group by model, protocol
),

divergences as (
    select
        model,
        protocol,
        avg(js_bits) as js_bits
    from papers.scylla_divergence
    where ood_split = 'ood' and measure = 'probability'
    group by model, protocol
)

select
    s.*,
    d.js_bits
from both_splits as s
left join divergences as d on s.model = d.model and s.protocol = d.protocol
order by s.model, s.protocol
