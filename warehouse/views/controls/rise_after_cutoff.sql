-- How far each model is above its level up to its own cutoff, by months since that cutoff.
-- Grain: one row per model, protocol, months_after_cutoff; 0 is the month of the stated cutoff.
-- Units: bits per byte. rise: the loss minus the part that the month's difficulty explains for the
--   model, minus the mean of this difference over the months up to the cutoff. It is a mean over
--   sources of text. Models without a cutoff, or without a month up to it, have no row. A month at
--   which one of the model's sources has no figure has no row, either. So a curve is over the same
--   sources throughout.
-- Compressors have no cutoff. Their rise is the plain change of the loss, without adjustment for
--   difficulty. It is over the same months and around the models' cutoffs, as a mean over the
--   models (num_models).
-- Source: docs/metrics.md (The panel).
create or replace view rise_after_cutoff as
with adjusted as (
    select
        l.model,
        l.model as dated_by,
        l.source,
        l.protocol,
        l.month,
        m.cutoff,
        l.bits_per_byte - coalesce(s.sensitivity, 1) * d.difficulty as bits_per_byte
    from monthly_loss as l
    inner join models as m on l.model = m.model
    inner join month_difficulty as d
        on l.source = d.source and l.protocol = d.protocol and l.month = d.month
    left join model_sensitivity as s
        on l.model = s.model and l.source = s.source and l.protocol = s.protocol
    where
        l.is_text and l.bits_per_byte is not null and m.cutoff is not null
        and d.difficulty is not null and not is_compressor(l.model)
),

compressed as (
    select
        l.model,
        a.dated_by,
        l.source,
        l.protocol,
        l.month,
        a.cutoff,
        l.bits_per_byte
    from monthly_loss as l
    inner join adjusted as a
        on l.source = a.source and l.protocol = a.protocol and l.month = a.month
    where is_compressor(l.model) and l.bits_per_byte is not null
),

curves as (
    select *
    from adjusted
    union all
    select *
    from compressed
),

levelled as (
    select
        model,
        dated_by,
        source,
        protocol,
        date_diff('month', cutoff, month) as months_after_cutoff,
        bits_per_byte - avg(bits_per_byte) filter (month <= cutoff)
            over (partition by model, dated_by, source, protocol) as rise
    from curves
),

ages as (
    select
        model,
        dated_by,
        protocol,
        months_after_cutoff,
        avg(rise) as rise,
        count(*) as num_sources
    from levelled
    where rise is not null
    group by model, dated_by, protocol, months_after_cutoff
    qualify count(*) = max(count(*)) over (partition by model, dated_by, protocol)
)

select
    model,
    protocol,
    months_after_cutoff,
    avg(rise) as rise,
    max(num_sources) as num_sources,
    count(*) as num_models
from ages
group by model, protocol, months_after_cutoff;
