-- Whether one cell is landed, as these very losses.
select 1 as is_landed
from landed_cells
where
    model = $model
    and revision = $revision
    and source = $source
    and month is not distinct from cast($month as date)
    and protocol = $protocol
    and partition_digest = $partition_digest
    and scoring = $scoring;
