-- 1 where the database in use has tables of ours, 0 where it is new.
select count(*) as num_tables
from duckdb_tables()
where table_name = 'schema_version' and database_name = current_database();
