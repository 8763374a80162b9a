-- How far losses are from those that the published code of other evaluations gives. The runs are
-- recorded with the code, since no snapshot has them.
with recorded as (
    select unnest(from_json($runs, '[{
        "peer": "varchar", "version": "varchar", "setting": "varchar", "protocol": "varchar",
        "num_documents": "bigint", "difference": "double"
    }]'), recursive := true)
)

select *
from recorded
order by peer, setting, protocol
