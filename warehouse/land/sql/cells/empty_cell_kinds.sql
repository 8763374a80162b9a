-- Delete the rows of the touched cells, before they are inserted again.
delete from internal.cell_kinds as landed
using touched as t
where
    landed.model = t.model
    and landed.source = t.source
    and landed.month is not distinct from t.month
    and landed.protocol = t.protocol;
