-- Losses of the first tokens of documents: sums over the first milestone scored tokens of each.
-- Grain: one row per model, source, month, protocol, milestone.
-- Units: nats; num_chars (code points) and num_bytes (UTF-8) measure exactly the text of these
--   tokens. Only documents with at least `milestone` scored tokens count.
-- Source: the .json file next to a cell's losses; Zhu et al. 2024, arXiv 2405.08460.
create table if not exists cell_milestones (
    model varchar not null,
    source varchar not null,
    month date,
    protocol varchar not null,
    milestone bigint not null,
    num_documents bigint not null,
    nll_nats double not null,
    num_chars bigint not null,
    num_bytes bigint not null
);
