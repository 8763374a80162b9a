-- Figures of cells on other documents than most models, as if on the same: filled at publication.
-- Grain: one row per model, protocol, source, month; only cells that differ. The figure is that of
--   the month's reference model plus the difference to it on the documents that both measured.
--   These are at least half of the reference's. Empty in the writer's own database.
-- Units: bits per byte.
-- Source: docs/metrics.md (The panel); warehouse/estimates/sql/insert_shared_figures.sql.
create table if not exists internal.shared_figures (
    model varchar not null,
    source varchar not null,
    protocol varchar not null,
    month date not null, -- first day
    bits_per_byte double not null,
    num_documents bigint not null, -- that both measured
    fingerprint bigint not null -- of the reference's documents
);
