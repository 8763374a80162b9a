-- The standard error of control-adjusted gaps, by cluster bootstrap. For control_adjusted_gap_at.
-- Grain: one row per model, source, protocol, control.
-- Parameter: split_on, as in control_adjusted_gap_at.
-- A cluster weighs the same for the model and for the control: what they share cancels out in each
--   of the 200 replicates. overlap: how far the months consist of the same clusters, as in
--   half_interval, by which degrees of freedom are divided.
-- Units: bits per byte. Months of a single cluster, which have no replicates, are passed over.
-- Source: metrics.md, section 5; ADR 0016. Reads controlled_cells_at, replicate_deviations.
create or replace macro control_gap_errors_at(split_on) as table
    with cells as materialized (
        from controlled_cells_at(split_on)
    ),

    deviations as materialized (
        from replicate_deviations
    ),

    weights as (
        select
            model,
            source,
            protocol,
            control,
            sum(power(weight, 4)) as squares
        from cells
        where is_same
        group by model, source, protocol, control
    ),

    replicates as (
        select
            w.model,
            w.source,
            w.protocol,
            w.control,
            m.replicate,
            sum(w.weight * (m.deviation - c.deviation)) as deviation,
            sum(w.weight * w.weight * m.weight_deviation) as weight_deviation
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
        where w.is_same
        group by w.model, w.source, w.protocol, w.control, m.replicate
    )

    select
        r.model,
        r.source,
        r.protocol,
        r.control,
        sqrt(avg(r.deviation * r.deviation)) as standard_error,
        avg(r.weight_deviation * r.weight_deviation) / any_value(w.squares) as overlap
    from replicates as r
    inner join weights as w
        on
            r.model = w.model
            and r.source = w.source
            and r.protocol = w.protocol
            and r.control = w.control
    group by r.model, r.source, r.protocol, r.control;
