-- Mean over sources of the control-adjusted gap at a split.
-- Grain: one row per model, protocol, control.
-- Parameter: split_on, as in control_adjusted_gap_at.
-- Units: bits per byte: unweighted means over the sources of text with months on both sides. The
--   sources' errors are independent, because they have different documents: standard_error is
--   sqrt(sum of squares) / number of sources. *_low and *_high are t_975(degrees_of_freedom)
--   standard errors away; NULL if a source has no interval.
-- Source: docs/metrics.md (Control-adjusted figures).
create or replace macro internal.control_adjusted_gap_overall_at(split_on) as table
    with means as (
        select
            model,
            protocol,
            control,
            any_value(is_default_control) as is_default_control,
            any_value(split_date) as split_date,
            any_value(split_basis) as split_basis,
            count(*) as num_sources,
            cast(sum(num_months_left_out) as bigint) as num_months_left_out,
            avg(bits_per_byte_gap) as bits_per_byte_gap,
            avg(control_bits_per_byte_gap) as control_bits_per_byte_gap,
            avg(adjusted_gap) as adjusted_gap,
            case
                when count(standard_error) = count(*)
                    then sqrt(sum(power(standard_error, 2))) / count(*)
            end as standard_error,
            coalesce(
                power(sum(power(standard_error, 2)), 2)
                / nullif(sum(power(standard_error, 4) / degrees_of_freedom), 0),
                min(degrees_of_freedom)
            ) as degrees_of_freedom
        from internal.control_adjusted_gap_at(split_on)
        where is_text and adjusted_gap is not null
        group by model, protocol, control
    )

    select
        model,
        protocol,
        control,
        is_default_control,
        split_date,
        split_basis,
        num_sources,
        num_months_left_out,
        bits_per_byte_gap,
        control_bits_per_byte_gap,
        adjusted_gap,
        adjusted_gap - t_975(degrees_of_freedom) * standard_error as adjusted_gap_low,
        adjusted_gap + t_975(degrees_of_freedom) * standard_error as adjusted_gap_high,
        standard_error,
        case when standard_error is not null then degrees_of_freedom end as degrees_of_freedom
    from means;
