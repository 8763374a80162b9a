-- The smallest train/test gap that a source's monthly volume could show, and the volume that a
-- small gap would need.
-- Grain: one row per model, source, protocol, num_months_each_side (3, 6 and 12).
-- Units: bits per byte. detectable_gap is the true gap that is found (its 95 % interval is above 0)
--   in 80 of 100 trials, with so many months before and after the split, each of num_documents:
--   (t_975 + 0.8416) standard errors of the gap. standard_error is the root mean square of the
--   num_months months that have one (heavy months count: their median promises too much),
--   num_documents their median; NULL without any.
--   num_documents_for_a_hundredth are the documents a month that a gap of 0.01 would need.
-- Months count as independent: where the same pages come back each month, less is enough.
-- A gap of the text itself, which every model has, is not told apart: see the controls.
-- Source: two-sided test at 5 %, power 80 %; docs/metrics.md (Power).
create or replace view detectable_gap as
with months as (
    select
        model,
        source,
        protocol,
        count(standard_error) as num_months,
        median(num_documents) filter (where standard_error is not null) as num_documents,
        sqrt(avg(standard_error * standard_error)) as standard_error,
        median(
            case
                when standard_error is not null
                    then least(3 * degrees_of_freedom, num_clusters - 1)
            end
        ) as degrees_of_freedom
    from internal.monthly_loss_details
    where bits_per_byte is not null
    group by model, source, protocol
),

sides as (
    select unnest([3, 6, 12]) as num_months_each_side
),

gaps as (
    select
        m.*,
        sides.num_months_each_side,
        m.standard_error * sqrt(2 / sides.num_months_each_side) as gap_error,
        2 * sides.num_months_each_side * m.degrees_of_freedom as gap_degrees_of_freedom
    from months as m
    cross join sides
)

select
    model,
    source,
    protocol,
    num_months_each_side,
    num_months,
    num_documents,
    standard_error,
    (t_975(gap_degrees_of_freedom) + 0.8416212335729143e0) * gap_error as detectable_gap,
    cast(
        ceil(
            num_documents
            * power((1.959963984540054e0 + 0.8416212335729143e0) * gap_error / 0.01e0, 2)
        ) as bigint
    ) as num_documents_for_a_hundredth
from gaps;
