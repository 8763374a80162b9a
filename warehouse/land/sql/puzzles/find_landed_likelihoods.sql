-- One row if the likelihoods of a cell have landed. Parameters: model, puzzle, protocol, level,
-- complexity, digest.
select true as has_landed
from internal.scylla_likelihoods
where
    model = $model
    and puzzle = $puzzle
    and protocol = $protocol
    and level is not distinct from $level
    and complexity = $complexity
    and answers_digest = $digest
having count(*) > 0;
