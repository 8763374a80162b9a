-- Databases up to November 2026 called the printed name of a model `model`. The table is written
-- again from its files, where this column tells the two names apart.
alter table if exists main.published_figures add column if not exists printed_model varchar;
