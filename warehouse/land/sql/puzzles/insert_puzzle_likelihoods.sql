-- Insert the likelihoods of a cell. Input: puzzle_likelihoods_to_land (PUZZLE_LIKELIHOODS).
-- Parameters: level, complexity, digest.
insert into internal.scylla_likelihoods by name
select
    model,
    puzzle,
    protocol,
    split,
    item,
    $level::integer as level,
    $complexity::varchar as complexity,
    token_nats,
    prompt_nats,
    prompt_tokens,
    reason,
    $digest as answers_digest
from puzzle_likelihoods_to_land;
