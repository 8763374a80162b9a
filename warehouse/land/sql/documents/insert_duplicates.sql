-- Land the duplicates of one partition.
-- Input: duplicates_to_land, Arrow data of schema DUPLICATES, with found_at in UTC.
insert into internal.duplicate_of by name
select *
from duplicates_to_land;
