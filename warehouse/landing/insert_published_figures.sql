-- Take over what the files of printed tables hold and the table lacks.
insert into published_figures by name
select * from staged_published_figures
except
select * from published_figures;
