-- Insert published figures of the reference files that the table lacks.
insert into published_figures by name
select * from staged_published_figures
except
select * from published_figures;
