-- The difference between the texts of two months, computed from their sealed partitions.
-- Grain: one row per source, month, other month (an earlier one); dated text only.
-- Units: difference is 1 - similarity, 0 = the same text; num_bytes is UTF-8.
-- Source: `tidemark compare-texts`; Li et al. 2024, arXiv 2402.00861, appendix B.
create table if not exists internal.text_comparisons (
    source varchar not null,
    month date not null, -- first day
    other_month date not null, -- first day; what the month is compared with
    method varchar not null, -- articles (page by page) or pooled
    version integer not null, -- of the computation
    num_documents bigint not null, -- of the month, whose text was compared
    num_bytes bigint not null, -- of the month's text that was compared
    difference double, -- NULL = not measured (see reason)
    reason varchar,
    partition_digest varchar not null, -- of the month's partition
    other_partition_digest varchar not null
);
