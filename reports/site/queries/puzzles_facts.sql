-- What figures of puzzles are from: ways of asking, puzzles, answers. Puzzles have no months.
select
    string_agg(distinct protocol, ', ' order by protocol) as protocol,
    null as "window",
    null as num_documents,
    count(distinct puzzle) as num_puzzles,
    count(*) as num_answers,
    null as measured_at
from scylla_items
