-- Monthly compression rates from publications, for comparison with tidemark's figures.
-- Grain: one row per model, source, month.
-- Units: compression_rate is a fraction (compressed size / raw size), never a percentage; num_bytes
--   is the raw size, if published.
-- Source: `tidemark land rates`. View monthly_loss shows them under protocol `published`.
create table if not exists internal.published_rates (
    model varchar not null,
    source varchar not null,
    month date not null,
    compression_rate double not null,
    num_bytes bigint,
    is_text boolean not null,
    reference varchar
);
