-- The straight line of benchmark scores on each figure of compression, with intervals.
-- Grain: one row per protocol, figure, scope, scope_name, against, model_kind, size_class.
-- Units and columns: as benchmark_fit_at; bits_per_byte_after is of the months after each model's
--   own cutoff.
-- Source: Huang et al. 2024, arXiv 2404.09937; docs/metrics.md (Time).
create or replace view papers.benchmark_fit as
select *
from papers.benchmark_fit_at(cast(null as date));
