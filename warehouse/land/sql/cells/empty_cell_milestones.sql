-- Delete the scoring records of the touched cells, whose losses will be replaced.
delete from cell_milestones as landed
using touched as t
where
    landed.model = t.model
    and landed.source = t.source
    and landed.month is not distinct from t.month
    and landed.protocol = t.protocol;
