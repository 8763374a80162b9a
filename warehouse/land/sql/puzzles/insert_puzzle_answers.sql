-- Insert the answers to a cell's items. Input: puzzle_answers_to_land (PUZZLE_ANSWERS).
insert into internal.scylla_answers by name
select
    model,
    puzzle,
    protocol,
    split,
    item,
    status,
    lenient_status,
    paper_status,
    num_tokens,
    reason
from puzzle_answers_to_land;
