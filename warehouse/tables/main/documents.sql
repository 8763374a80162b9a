-- The documents of every landed partition, without their text or media.
-- Grain: one row per source, month, document.
create table if not exists documents (
    document_id varchar not null,
    source varchar not null,
    month date, -- first day; NULL = undated corpus
    category varchar,
    language varchar, -- BCP 47, or code:python and the like
    licence varchar not null,
    cluster_id varchar, -- what is resampled together; NULL = the document alone
    num_chars bigint not null, -- code points; 0 = an image or a recording
    num_bytes bigint not null -- UTF-8, or of the media
);
