-- Insert runs of the canary; skip runs that are recorded already.
-- Input: rows_to_land, Arrow data with the columns of the table.
insert into canary_runs by name
select given.*
from rows_to_land as given
anti join canary_runs as recorded
    on
        given.run_at = recorded.run_at
        and given.device = recorded.device
        and given.dtype = recorded.dtype;
