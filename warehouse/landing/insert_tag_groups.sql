-- Take over the tags that the file of groups holds and the table lacks.
insert into tag_groups by name
select * from tags_to_load
except
select * from tag_groups;
