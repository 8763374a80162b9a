-- 1 where the database has the table of duplicates, 0 where it is of a former version.
select count(*) as num_tables
from duckdb_tables()
where table_name = 'duplicate_of' and database_name = current_database();
