-- Figures of models by source in one long table, for views that take any figure.
-- Grain: one row per model, protocol, source, figure, milestone; no row if a figure is NULL.
-- Units: bits per byte for bits_per_byte (mean over months), bits_per_byte_gap (as in
--   train_test_gap) and milestone_bits_per_byte (mean over months, first `milestone` tokens of
--   documents). corpus_bits_per_char: bits per character of an undated corpus. tbi_per_month: bits
--   per byte per month. decay_mean_pct: percent. milestone is 0 for other figures.
-- Source: docs/metrics.md (Likelihood, Time).
create or replace view internal.source_figures as
with monthly as materialized (
    select
        l.model,
        l.protocol,
        l.source,
        bool_or(l.is_text) as is_text,
        avg(l.bits_per_byte) as bits_per_byte,
        avg(l.bits_per_byte) filter (where l.month > m.cutoff)
        - avg(l.bits_per_byte) filter (where l.month <= m.cutoff) as bits_per_byte_gap
    from internal.monthly_loss_details as l
    left join main.models as m on l.model = m.model
    where l.bits_per_byte is not null
    group by l.model, l.protocol, l.source
),

figures as (
    select
        model,
        protocol,
        source,
        'bits_per_byte' as figure,
        0 as milestone,
        bits_per_byte as value
    from monthly
    union all
    select
        model,
        protocol,
        source,
        'bits_per_byte_gap' as figure,
        0 as milestone,
        bits_per_byte_gap as value
    from monthly
    union all
    select
        model,
        protocol,
        source,
        'tbi_per_month' as figure,
        0 as milestone,
        tbi_per_month as value
    from main.tbi_likelihood
    where scope = 'source'
    union all
    select
        model,
        protocol,
        source,
        'decay_mean_pct' as figure,
        0 as milestone,
        decay_mean_pct as value
    from internal.decay_figures
    union all
    select
        model,
        protocol,
        source,
        'milestone_bits_per_byte' as figure,
        milestone,
        avg(bits_per_byte) as value
    from papers.length_milestones
    where month is not null
    group by model, protocol, source, milestone
)

select
    f.model,
    f.protocol,
    f.source,
    m.is_text,
    f.figure,
    f.milestone,
    f.value
from figures as f
inner join monthly as m
    on f.model = m.model and f.protocol = m.protocol and f.source = m.source
where f.value is not null
union all
select
    model,
    protocol,
    source,
    true as is_text,
    'corpus_bits_per_char' as figure,
    0 as milestone,
    bits_per_char as value
from internal.corpus_figures
where source is not null;
