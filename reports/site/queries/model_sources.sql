-- One row per model and source: level, gap, ageing, measured cutoff and decay.
-- gap_q_value: false discovery rate of adjusted_gap [probability]
-- decay_q_value: false discovery rate of decay_mean_pct [probability]
-- ageing_q_value: false discovery rate of growth_per_year [probability]
-- decay_3_pct_low: lower end of the 95 % interval of decay_3_pct [percent]
-- decay_3_pct_high: upper end of the 95 % interval of decay_3_pct [percent]
-- decay_6_pct_low: lower end of the 95 % interval of decay_6_pct [percent]
-- decay_6_pct_high: upper end of the 95 % interval of decay_6_pct [percent]
-- decay_9_pct_low: lower end of the 95 % interval of decay_9_pct [percent]
-- decay_9_pct_high: upper end of the 95 % interval of decay_9_pct [percent]
-- decay_3_pct: rise of the loss 3 months after the release [percent]
-- decay_6_pct: rise of the loss 6 months after the release [percent]
-- decay_9_pct: rise of the loss 9 months after the release [percent]
-- decay_12_pct: rise of the loss 12 months after the release [percent]
-- decay_12_pct_low: lower end of the 95 % interval of decay_12_pct [percent]
-- decay_12_pct_high: upper end of the 95 % interval of decay_12_pct [percent]
-- level_reason: why there is no level
-- gap_reason: why there is no gap
-- ageing_reason: why there is no ageing, or no interval of it
-- cutoff_reason: why there is no measured cutoff
-- decay_reason: why there is no decay, or no interval of it
-- seen_reason: why there is no level up to the cutoff
-- share_reason: why there is no share of parameters, or no interval of it
-- slope_reason: why there is no slope, or no interval of it
-- bits_per_byte: mean over months after the cutoff, or over all if the cutoff is unknown [bits per
--   byte]
-- bits_per_byte_seen: mean over months up to the cutoff, maybe seen in training [bits per byte]
with levels as (
    select
        l.model,
        l.source,
        avg(l.bits_per_byte) filter (
            where t.last_month is null or l.month > t.last_month
        ) as bits_per_byte,
        avg(l.bits_per_byte) filter (where l.month <= t.last_month) as bits_per_byte_seen,
        count(*) as num_months,
        any_value(t.last_month) as last_month
    from monthly_loss as l
    left join training_ends as t on l.model = t.model
    where l.protocol = $protocol and l.bits_per_byte is not null
    group by l.model, l.source
),

horizons as (
    select
        model,
        source,
        any_value(decay_mean_pct) as decay_mean_pct,
        any_value(decay_mean_pct_low) as decay_mean_pct_low,
        any_value(decay_mean_pct_high) as decay_mean_pct_high,
        any_value(q_value) as q_value,
        any_value(reason) as reason,
        any_value(decay_pct) filter (where horizon = 3) as decay_3_pct,
        any_value(decay_pct_low) filter (where horizon = 3) as decay_3_pct_low,
        any_value(decay_pct_high) filter (where horizon = 3) as decay_3_pct_high,
        any_value(decay_pct) filter (where horizon = 6) as decay_6_pct,
        any_value(decay_pct_low) filter (where horizon = 6) as decay_6_pct_low,
        any_value(decay_pct_high) filter (where horizon = 6) as decay_6_pct_high,
        any_value(decay_pct) filter (where horizon = 9) as decay_9_pct,
        any_value(decay_pct_low) filter (where horizon = 9) as decay_9_pct_low,
        any_value(decay_pct_high) filter (where horizon = 9) as decay_9_pct_high,
        any_value(decay_pct) filter (where horizon = 12) as decay_12_pct,
        any_value(decay_pct_low) filter (where horizon = 12) as decay_12_pct_low,
        any_value(decay_pct_high) filter (where horizon = 12) as decay_12_pct_high
    from decay_by_horizon
    where protocol = $protocol
    group by model, source
)

select
    l.model,
    l.source,
    l.bits_per_byte,
    l.bits_per_byte_seen,
    l.num_months,
    g.value as adjusted_gap,
    g.value_low as adjusted_gap_low,
    g.value_high as adjusted_gap_high,
    g.q_value as gap_q_value,
    a.growth_per_year,
    a.growth_per_year_low,
    a.growth_per_year_high,
    a.q_value as ageing_q_value,
    c.cutoff_text,
    c.estimated_cutoff,
    c.estimated_cutoff_low,
    c.estimated_cutoff_high,
    c.cutoff_onset,
    h.decay_mean_pct,
    h.decay_mean_pct_low,
    h.decay_mean_pct_high,
    h.q_value as decay_q_value,
    h.decay_3_pct,
    h.decay_3_pct_low,
    h.decay_3_pct_high,
    h.decay_6_pct,
    h.decay_6_pct_low,
    h.decay_6_pct_high,
    h.decay_9_pct,
    h.decay_9_pct_low,
    h.decay_9_pct_high,
    h.decay_12_pct,
    h.decay_12_pct_low,
    h.decay_12_pct_high,
    t.tbi_per_year,
    t.tbi_per_year_low,
    t.tbi_per_year_high,
    p.equivalent_share,
    p.equivalent_share_low,
    p.equivalent_share_high,
    case when l.bits_per_byte is null then 'no month after ' || strftime(l.last_month, '%Y-%m') end
        as level_reason,
    if(is_compressor(l.model), 'a compressor has no cutoff', g.reason) as gap_reason,
    if(is_compressor(l.model), 'a compressor has no cutoff', a.reason) as ageing_reason,
    if(is_compressor(l.model), 'a compressor has no cutoff', c.reason) as cutoff_reason,
    if(is_compressor(l.model), 'a compressor has no release', h.reason) as decay_reason,
    case
        when is_compressor(l.model) then 'a compressor has no cutoff'
        when l.last_month is null then 'cutoff unknown'
        when l.bits_per_byte_seen is null then 'no month up to the cutoff'
    end as seen_reason,
    p.reason as share_reason,
    t.reason as slope_reason
from levels as l
-- The panel's part of control_adjusted_gap, without what compressors say.
left join panel_tests as g
    on
        l.model = g.model and l.source = g.source
        and g.effect = 'gap' and g.protocol = $protocol
left join ageing as a on l.model = a.model and l.source = a.source and a.protocol = $protocol
left join estimated_cutoff as c
    on l.model = c.model and l.source = c.source and c.protocol = $protocol
left join horizons as h on l.model = h.model and l.source = h.source
left join tbi_likelihood as t
    on l.model = t.model and l.source = t.source and t.protocol = $protocol
left join age_in_parameters as p
    on l.model = p.model and l.source = p.source and p.protocol = $protocol
order by l.model, l.source
