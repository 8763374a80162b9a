-- Land the changed rates.
insert into published_rates by name
select * from changed_published_rates;
