-- Copy what is incoming, to change it before it lands.
insert into staged
select * from incoming;
