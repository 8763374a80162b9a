-- The sources in the mean of a model's slope over months. For slope_cells and tbi_likelihood.
-- Grain: one row per model, source, protocol. Only sources of text with two months or more; if one
--   has enough months for an interval, only such sources. So a source that began late does not take
--   the common months away.
-- Source: docs/metrics.md (Time).
create or replace view internal.lasting_sources as
select
    model,
    source,
    protocol,
    count(*) as num_months
from internal.monthly_loss_details
where bits_per_byte is not null and is_text
group by model, source, protocol
having count(*) >= minimum('months of a line')
qualify
    num_months >= minimum('months of a slope')
    or max(num_months) over (partition by model, protocol) < minimum('months of a slope');
