-- Land the staged rows.
insert into chunk_losses
select * from incoming;
