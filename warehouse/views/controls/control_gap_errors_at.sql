-- The standard error of control-adjusted gaps, by cluster bootstrap. For control_adjusted_gap_at.
-- Grain: one row per model, source, protocol, control.
-- Parameter: split_on, as in control_adjusted_gap_at.
-- A cluster weighs the same for the model and for the control: what they share cancels out in each
--   of the 200 replicates. One that drew no document of a month says nothing, and is left out.
-- Units: bits per byte. Months of a single cluster, which have no replicates, are passed over.
-- Source: metrics.md, section 5. Reads controlled_cells_at, cell_replicates.
create or replace macro control_gap_errors_at(split_on) as table
    with cells as materialized (
        from controlled_cells_at(split_on)
    ),

    replicates as (
        select
            w.model,
            w.source,
            w.protocol,
            w.control,
            m.replicate,
            sum(w.weight * (m.nll_nats / m.num_bytes - c.nll_nats / c.num_bytes)) / ln(2) as gap
        from cells as w
        inner join cell_replicates as m
            on
                w.model = m.model
                and w.source = m.source
                and w.protocol = m.protocol
                and w.month = m.month
        inner join cell_replicates as c
            on
                w.control = c.model
                and w.source = c.source
                and w.protocol = c.protocol
                and w.month = c.month
                and m.replicate = c.replicate
        where w.is_same
        group by w.model, w.source, w.protocol, w.control, m.replicate
        having min(m.num_bytes) > 0
    )

    select
        model,
        source,
        protocol,
        control,
        stddev_samp(gap) as standard_error
    from replicates
    group by model, source, protocol, control;
