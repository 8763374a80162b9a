-- Empty the touched cells, so that their rows can be inserted anew.
delete from cell_replicates as landed
using touched as t
where
    landed.model = t.model
    and landed.source = t.source
    and landed.month is not distinct from t.month
    and landed.protocol = t.protocol;
