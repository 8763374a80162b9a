-- The schema of a table in the current database; former versions had only schema main.
select schema_name
from duckdb_tables()
where table_name = $table_name and not temporary and database_name = current_database();
