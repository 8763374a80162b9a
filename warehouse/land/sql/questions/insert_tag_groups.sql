-- Insert tags of the file of groups that the table lacks.
insert into internal.tag_groups by name
select * from tags_to_load
except
select * from internal.tag_groups;
