-- Gap of a model, less the gap of a control on the same documents (difference in differences).
-- Grain: one row per model, source, protocol, control. Compressors are only controls here, not
--   models.
-- Parameter: split_on, the first day after the split; NULL splits each model after its own cutoff
--   month, and leaves out models without a cutoff.
-- Only months count in which the control has measured the same documents, byte for byte;
--   num_months_left_out is the number of months with other documents.
-- Units: bits per byte. A gap is the mean of monthly figures after the split less the mean before;
--   NULL if one side is empty. *_low and *_high bound a 95 % interval: t_975(degrees_of_freedom) *
--   standard_error (200 replicates, paired by cluster). degrees_of_freedom follow from the
--   effective number of clusters. NULL if a month has no pooled error.
-- Source: docs/metrics.md (Control-adjusted figures).
create or replace macro internal.control_adjusted_gap_at(split_on) as table
    with gaps as (
        select
            model,
            source,
            protocol,
            control,
            any_value(split_date) as split_date,
            any_value(split_basis) as split_basis,
            bool_and(is_text) as is_text,
            count(weight) filter (where not is_after) as num_months_before,
            count(weight) filter (where is_after) as num_months_after,
            count(*) - count(weight) as num_months_left_out,
            sum(weight * bits_per_byte) as gap,
            sum(weight * control_bits_per_byte) as control_gap,
            bool_and(variance is not null) filter (where weight is not null) as has_errors
        from internal.controlled_cells_at(split_on)
        group by model, source, protocol, control
    ),

    figures as (
        select
            g.*,
            g.num_months_before > 0 and g.num_months_after > 0 as is_two_sided,
            e.standard_error,
            e.degrees_of_freedom,
            t_975(e.degrees_of_freedom) * e.standard_error as half_width
        from gaps as g
        left join internal.control_gap_errors_at(split_on) as e
            on
                g.has_errors
                and g.model = e.model
                and g.source = e.source
                and g.protocol = e.protocol
                and g.control = e.control
    )

    select
        model,
        source,
        protocol,
        control,
        control = 'control:zstd' as is_default_control,
        is_text,
        split_date,
        split_basis,
        num_months_before,
        num_months_after,
        num_months_left_out,
        case when is_two_sided then gap end as bits_per_byte_gap,
        case when is_two_sided then control_gap end as control_bits_per_byte_gap,
        case when is_two_sided then gap - control_gap end as adjusted_gap,
        case when is_two_sided then gap - control_gap - half_width end as adjusted_gap_low,
        case when is_two_sided then gap - control_gap + half_width end as adjusted_gap_high,
        case when is_two_sided then standard_error end as standard_error,
        case when is_two_sided and standard_error is not null then degrees_of_freedom end
            as degrees_of_freedom
    from figures;
