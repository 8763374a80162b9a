-- The smallest train/test gap that can be detected with a source's monthly volume of text.
-- Grain: one row per model, source, protocol, num_months_each_side (3, 6 and 12).
-- Parameter: num_more, documents per month in addition to those that there are.
-- Units: bits per byte. detectable_gap is the true gap of which the interval over months is above 0
--   in 80 of 100 trials: (t_975 + 0.8416) * standard error of the gap, of months or of documents,
--   whichever gives more. detectable_gap_documents: of documents alone. Each side has
--   num_months_each_side months of num_documents documents. month_sd is how much months differ
--   beyond their documents; more documents do not reduce it. NULL: fewer than four blocks of three
--   months, planned or measured.
-- standard_error is the root mean square over the num_months months with a standard error; their
--   median would be too optimistic. num_documents is their median plus num_more.
--   num_documents_for_a_hundredth: documents per month needed to detect a gap of 0.01; NULL if no
--   number is enough.
-- If the same pages recur every month, fewer documents are enough. A gap that the text itself has
--   for every model is not distinguished: see control_adjusted_gap.
-- Source: two-sided test at 5 %, power 80 %; docs/metrics.md (Power).
create or replace macro detectable_gap_at(num_more) as table
    with documents as (
        select
            model,
            source,
            protocol,
            count(standard_error) as num_months,
            median(num_documents) filter (where standard_error is not null) as num_now,
            sqrt(avg(standard_error * standard_error)) as error_now,
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

    volumes as (
        select
            d.*,
            d.num_now + num_more as num_documents,
            d.error_now * sqrt(d.num_now / (d.num_now + num_more)) as standard_error,
            coalesce(g.memory, s.memory) as memory,
            coalesce(g.shock, s.shock) as shock
        from documents as d
        left join internal.own_month_errors as g
            on d.model = g.model and d.source = g.scope and d.protocol = g.protocol
        left join internal.slope_month_errors as s
            on d.model = s.model and d.source = s.scope and d.protocol = s.protocol
    ),

    sides as (
        select unnest([3, 6, 12]) as num_months_each_side
    ),

    -- kept: memory^num_months_each_side.
    planned as (
        select
            v.*,
            sides.num_months_each_side,
            -- greatest() would ignore the NULL of an unknown shock.
            case
                when v.shock < v.error_now then 0
                else sqrt(v.shock * v.shock - v.error_now * v.error_now)
            end as month_sd,
            2 / sides.num_months_each_side as num_sides_per_month,
            power(v.memory, sides.num_months_each_side) as kept,
            2 * (sides.num_months_each_side // 3) - 2 as month_degrees
        from volumes as v
        cross join sides
    ),

    -- month_variance: of the difference of two means of neighbouring autocorrelated months.
    errors as (
        select
            *,
            standard_error * sqrt(num_sides_per_month) as document_error,
            t_975(2 * num_months_each_side * degrees_of_freedom) + 0.8416212335729143e0
                as document_factor,
            case when month_degrees >= 2 then t_975(month_degrees) + 0.8416212335729143e0 end
                as month_factor,
            month_sd * month_sd * num_sides_per_month * (
                (1 + memory) / (1 - memory)
                - (2 * memory * (1 - kept) + memory * (1 - kept) * (1 - kept))
                / (num_months_each_side * (1 - memory) * (1 - memory))
            ) as month_variance
        from planned
    )

    select
        model,
        source,
        protocol,
        num_months_each_side,
        case
            when month_factor is not null and month_variance is not null
                then
                    greatest(
                        document_factor * document_error,
                        month_factor * sqrt(month_variance + document_error * document_error)
                    )
        end as detectable_gap,
        document_factor * document_error as detectable_gap_documents,
        num_months,
        num_documents,
        standard_error,
        month_sd,
        memory,
        case
            when power(0.01e0 / month_factor, 2) > month_variance
                then
                    cast(
                        ceil(
                            num_documents * document_error * document_error
                            / (power(0.01e0 / month_factor, 2) - month_variance)
                        ) as bigint
                    )
        end as num_documents_for_a_hundredth
    from errors;
