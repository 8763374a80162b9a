-- Land the changed rates.
insert into internal.published_rates by name
select * from changed_published_rates;
