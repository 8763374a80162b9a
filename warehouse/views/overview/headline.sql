-- One figure per model: bits per byte of text under the default protocol, with the rank.
-- Grain: one row per compared model.
-- Units: bits_per_byte is the unweighted mean over sources of the unweighted mean over months. It
--   covers only the (source, month) cells that all compared models have; num_months counts their
--   different months. eligible_cells and compared_cells define which cells and models count.
-- low and high bound 95 % intervals over time: would other months like these say the same?
--   *_documents: would other documents of these months? The former is the wider of the latter and
--   of a jackknife over blocks of three calendar months. It is NULL if a source has fewer than four
--   blocks, and both are NULL if a cell has a single cluster.
-- An interval of a rank is from 1 + (significantly better models) to all - (significantly worse
--   models), as in monthly_rank.
-- Source: docs/metrics.md (Likelihood, Headline, Intervals); the mean over sources is Uncheatable
--   Eval's.
-- headline_at has the same figures over a window of months.
create or replace view headline as
select *
from headline_at(cast(null as date), cast(null as date));
