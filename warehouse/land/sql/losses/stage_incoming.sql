-- Copy the incoming losses to the staging table, to change them before landing.
insert into staged
select * from incoming;
