"""The database to write: connections, locks, creation of tables and views, and statements."""
