-- Load the changed ratings.
insert into internal.human_difficulty by name
select * from changed_human_difficulty;
