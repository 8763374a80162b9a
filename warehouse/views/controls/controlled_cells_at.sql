-- Monthly figures of each model and each compressor, with weights in a gap.
-- Grain: one row per model, source, protocol, control, month; only sources of calendar months. For
--   control_adjusted_gap_at.
-- Parameter: split_on, as in control_adjusted_gap_at.
-- is_same: both measured the same documents, and the same bytes of each (equal fingerprints). For a
--   cell on other documents than most models, figure and fingerprint come from shared_figures.
-- weight: 1 / months after the split, or -1 / months before it; NULL where not is_same.
-- Units: bits per UTF-8 byte. variance: sum of both squared standard errors; NULL if a cell has no
--   pooled error. degrees_of_freedom: lower value of both cells; NULL if both have none.
-- Source: docs/metrics.md (Control-adjusted figures).
create or replace macro internal.controlled_cells_at(split_on) as table
    with figures as (
        select
            c.* replace (
                coalesce(s.fingerprint, c.fingerprint) as fingerprint,
                e.standard_error as standard_error,
                e.degrees_of_freedom as degrees_of_freedom
            ),
            coalesce(s.bits_per_byte, c.nll_nats / (ln(2) * c.num_bytes)) as bits_per_byte,
            starts_with(c.model, 'control:') as is_control
        from internal.sound_cells as c
        left join internal.shared_figures as s
            on
                c.model = s.model
                and c.source = s.source
                and c.protocol = s.protocol
                and c.month = s.month
        left join internal.pooled_errors as e
            on
                c.model = e.model
                and c.source = e.source
                and c.protocol = e.protocol
                and c.month = e.month
        where c.month is not null and c.num_bytes > 0 and source_period(c.source) = 'month'
    ),

    models_with_figures as (
        select distinct model
        from figures
        where not is_control
    ),

    splits as (
        select
            f.model,
            coalesce(cast(split_on as date), cast(m.cutoff + interval 1 month as date))
                as split_date,
            case when split_on is null then m.cutoff_provenance else 'analyst' end as split_basis
        from models_with_figures as f
        left join main.models as m on f.model = m.model
    ),

    pairs as (
        select
            m.model,
            m.source,
            m.protocol,
            c.model as control,
            m.month,
            s.split_date,
            s.split_basis,
            m.month >= s.split_date as is_after,
            m.fingerprint = c.fingerprint as is_same,
            m.num_chars > 0 as is_text,
            m.bits_per_byte,
            c.bits_per_byte as control_bits_per_byte,
            power(m.standard_error, 2) + power(c.standard_error, 2) as variance,
            least(m.degrees_of_freedom, c.degrees_of_freedom) as degrees_of_freedom
        from figures as m
        inner join splits as s on m.model = s.model
        inner join figures as c
            on m.source = c.source and m.protocol = c.protocol and m.month = c.month
        where c.is_control and s.split_date is not null
    )

    select
        *,
        case
            when is_same
                then case when is_after then 1e0 else -1e0 end / count(*) over (
                    partition by model, source, protocol, control, is_after, is_same
                )
        end as weight
    from pairs;
