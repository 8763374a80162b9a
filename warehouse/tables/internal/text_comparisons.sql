-- The difference between the texts of two months, computed from their sealed partitions.
-- Grain: one row per source, month, other month (an earlier month); dated text only.
-- Units: difference is 1 - similarity, 0 if the texts are equal; num_bytes is UTF-8 length.
-- Source: `tidemark corpus compare`; Li et al. 2024, arXiv 2402.00861, appendix B.
create table if not exists internal.text_comparisons (
    source varchar not null,
    month date not null,
    other_month date not null,
    method varchar not null,
    version integer not null,
    num_documents bigint not null,
    num_bytes bigint not null,
    difference double,
    reason varchar,
    partition_digest varchar not null,
    other_partition_digest varchar not null
);
