-- How far losses are from those that the published code of other evaluations gives. The runs are
-- recorded with the code, since no snapshot has them.
-- peer: project whose code was run
-- version: version of its code
-- setting: how it was run
-- protocol: protocol here
-- num_documents: documents that both scored [documents]
-- difference: largest relative difference of losses [1]
with recorded as (
    select unnest(from_json($runs, '[{
        "peer": "varchar", "version": "varchar", "setting": "varchar", "protocol": "varchar",
        "num_documents": "bigint", "difference": "double"
    }]'), recursive := true)
)

select *
from recorded
order by peer, setting, protocol
