-- Touched cells are no longer what was scored here.
update touched
set
    partition_digest = null,
    scoring = null;
