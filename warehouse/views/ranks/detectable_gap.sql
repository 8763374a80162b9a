-- The smallest train/test gap that can be detected with a source's monthly volume of text.
-- Also the volume needed to detect a small gap.
-- Grain: one row per model, source, protocol, num_months_each_side (3, 6 and 12).
-- Units: bits per byte. detectable_gap is the true gap with a 95 % interval above 0 in 80 of 100
--   trials: (t_975 + 0.8416) * standard error of the gap. Each side has num_months_each_side months
--   of num_documents documents. standard_error is the root mean square over the num_months months
--   with a standard error; their median would be too optimistic. num_documents is their median;
--   NULL without such months. num_documents_for_a_hundredth: documents per month needed to detect a
--   gap of 0.01.
-- Months count as independent; if the same pages recur every month, fewer documents are enough.
-- A gap that the text itself has for every model is not distinguished: see the controls.
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
