-- A database of a former version has no duplicates.
create temp table duplicate_of (
    source varchar,
    month date,
    document_id varchar,
    duplicate_of_document_id varchar
);
