-- Likelihood of the right answer to each item, and of its prompt.
-- Grain: one row per model, puzzle, protocol, split, item; only items with likelihoods.
-- Units: for the n tokens of the answer with probabilities p1 … pn after the prompt:
--   probability P = (p1 · … · pn)^(1/n) (a geometric mean), perplexity = 1 / P. prompt_perplexity
--   is exp(mean of -ln p) over the prompt's tokens but the first; NULL for a prompt of one token.
--   sorted_nats are the -ln p of the answer's tokens, the least likely first.
-- Source: Qi et al. 2024, code (calculate_probability_and_perplexity); docs/metrics.md (Puzzles).
create or replace view internal.scylla_item_likelihoods as
select
    model,
    puzzle,
    protocol,
    level,
    split,
    item,
    -- What follows the prompt's name in the protocol: two protocols with the same end of their
    -- names have the same items.
    regexp_extract(protocol, '-likelihood(.*)$', 1) as sampling,
    exp(-list_avg(token_nats)) as probability,
    exp(list_avg(token_nats)) as perplexity,
    case when prompt_tokens > 0 then exp(prompt_nats / prompt_tokens) end as prompt_perplexity,
    list_reverse_sort(token_nats) as sorted_nats
from internal.scylla_likelihoods
where token_nats is not null;
