-- What analysts ask first: questions, and the query that answers each.
-- Grain: one row per question, in reading order. A query stands alone and reads public views only.
-- Source: reference/start_here.yml, which docs/analysts.md and the page of data show, too.
create table if not exists start_here (
    question varchar not null,
    query varchar not null,
    view varchar not null
);
