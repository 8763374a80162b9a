-- Standard errors of control-adjusted gaps, by cluster bootstrap. For control_adjusted_gap_at.
-- Grain: one row per model, source, protocol, control.
-- Parameter: split_on, as in control_adjusted_gap_at.
-- A cluster has the same weight for the model and for the control, so shared variation cancels in
--   each of the 200 replicates. degrees_of_freedom are Kish's effective number of clusters less
--   one, over all months together: a recurring page counts once.
-- Units: bits per byte. Months without a pooled error have no replicates and are left out.
-- Source: docs/metrics.md (Control-adjusted figures); Kish 1965, "Survey
--   Sampling", section 11.2.
create or replace macro internal.control_gap_errors_at(split_on) as table
    with cells as materialized (
        select
            *,
            abs(weight) / sum(abs(weight)) over (partition by model, source, protocol, control)
                as share
        from internal.controlled_cells_at(split_on)
        where is_same
    ),

    deviations as materialized (
        from internal.pooled_deviations
    ),

    replicates as (
        select
            w.model,
            w.source,
            w.protocol,
            w.control,
            m.replicate,
            sum(w.weight * (m.deviation - c.deviation)) as deviation,
            sum(w.share * m.bytes_deviation) as bytes_deviation
        from cells as w
        inner join deviations as m
            on
                w.model = m.model
                and w.source = m.source
                and w.protocol = m.protocol
                and w.month = m.month
        inner join deviations as c
            on
                w.control = c.model
                and w.source = c.source
                and w.protocol = c.protocol
                and w.month = c.month
                and m.replicate = c.replicate
        group by w.model, w.source, w.protocol, w.control, m.replicate
    )

    select
        model,
        source,
        protocol,
        control,
        sqrt(avg(deviation * deviation)) as standard_error,
        greatest(1, 1 / nullif(avg(bytes_deviation * bytes_deviation), 0) - 1)
            as degrees_of_freedom
    from replicates
    group by model, source, protocol, control;
