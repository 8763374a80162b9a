-- The board: one row per model with text under the default protocol, by loss on months after the
-- latest cutoff of the ranked models. Models that are not compared come last.
-- note: why the model has no rank
-- rank_reason: why there is no rank, no level, or no interval of it
-- share_reason: why there is no share saved, or no interval of it
-- gap_reason: why there is no gap, or no interval of it
-- ageing_reason: why there is no ageing, or no interval of it
-- stated_reason: why there is no stated cutoff
-- trend_reason: why there is no line over time
-- cutoff_reason: why there is no measured cutoff
-- forecast_reason: why there is no accuracy of forecasts
-- puzzle_reason: why there is no score of puzzles
-- rank_set: ranks that other months, or documents, may give: low–high
-- size_class: class of parameters
-- weights: open, or closed (behind an API)
-- saved_share: how many fewer bits than control:zstd the model needs on the same months [share]
-- saved_share_low: lower end of its 95 % interval, over interval_basis [share]
-- saved_share_high: upper end of its 95 % interval [share]
-- gap_q_value: false discovery rate of adjusted_gap [probability]
-- ageing_q_value: false discovery rate of growth_per_year [probability]
-- stated_cutoff: last month of training text that the maker states, or that is inferred [date]
-- cutoff_provenance: how stated_cutoff is known: stated by the maker, inferred, or planted
-- forecast_accuracy: share of right answers to questions opened after the cutoff, over all ways of
--   asking [share]
-- forecast_accuracy_low: lower end of Wilson's 95 % interval; a question counts once [share]
-- forecast_accuracy_high: upper end of the interval [share]
-- expected_accuracy: share of right answers expected from guessing [share]
-- num_questions: questions opened after the cutoff, mean over ways of asking [questions]
-- puzzle_score: best score over ways of asking, on inputs that others wrote [-1 to 1]
-- resolution: half the width of the interval of a difference, median over pairs of ranked models
--   [bits per byte]
-- interval_basis: what intervals are over: months, or documents of these months
with answered as (
    select
        model,
        sum(accuracy * num_questions) / nullif(sum(num_questions), 0) as forecast_accuracy,
        sum(expected_accuracy * num_questions) / nullif(sum(num_questions), 0)
            as expected_accuracy,
        sum(num_questions) / count(distinct protocol) filter (where num_questions > 0)
            as num_questions,
        min(reason) as reason
    from forecast_accuracy
    -- Sources with documents beside each question ask the same questions again.
    where not ends_with(source, ':documents')
    group by model
),

forecasts as (
    select
        *,
        wilson_low(forecast_accuracy * num_questions, num_questions) as forecast_accuracy_low,
        wilson_high(forecast_accuracy * num_questions, num_questions) as forecast_accuracy_high
    from answered
),

puzzles as (
    select
        model,
        max(score) as puzzle_score,
        min(reason) as reason
    from scylla_scores
    where level is null and ood_split = 'ood' and rules = 'strict'
    group by model
),

board as (
    select
        *,
        is_compressor(model) as is_compressor,
        case
            when is_compressor then 'compressor'
            when rank is null then basis
        end as note
    from headline
    union all by name
    select
        u.model,
        is_compressor(u.model) as is_compressor,
        u.reason as note,
        0 as num_sources,
        0 as num_months
    from internal.uncompared_models as u
    where u.has_sound_cells
),

-- After the board: metadata describe a column as the first view with it does.
texts as (
    select
        model,
        count(distinct month) as num_months
    from monthly_loss
    where protocol = $protocol and is_text and bits_per_byte is not null
    group by model
)

select
    h.model,
    m.family,
    m.parameters,
    size_class(m.parameters) as size_class,
    m.kind,
    case
        when m.kind = 'api' then 'closed'
        when m.kind is not null and m.kind <> 'control' then 'open'
    end as weights,
    m.released,
    h.bits_per_byte,
    h.bits_per_byte_low,
    h.bits_per_byte_high,
    h.saved_share,
    h.saved_share_low,
    h.saved_share_high,
    h.rank,
    h.rank_low,
    h.rank_high,
    h.rank_set,
    g.value as adjusted_gap,
    g.value_low as adjusted_gap_low,
    g.value_high as adjusted_gap_high,
    g.q_value as gap_q_value,
    a.growth_per_year,
    a.growth_per_year_low,
    a.growth_per_year_high,
    a.q_value as ageing_q_value,
    m.cutoff as stated_cutoff,
    m.cutoff_provenance,
    c.cutoff_text,
    c.estimated_cutoff,
    c.estimated_cutoff_low,
    c.estimated_cutoff_high,
    f.forecast_accuracy,
    f.forecast_accuracy_low,
    f.forecast_accuracy_high,
    f.expected_accuracy,
    f.num_questions,
    p.puzzle_score,
    h.basis,
    h.note,
    coalesce(h.reason, h.note) as rank_reason,
    case
        when h.saved_share_low is not null then null
        when h.model = 'control:zstd' then 'zstd itself'
        else rank_reason
    end as share_reason,
    if(h.is_compressor, 'a compressor has no cutoff', g.reason) as gap_reason,
    if(h.is_compressor, 'a compressor has no cutoff', a.reason) as ageing_reason,
    case
        when h.is_compressor then 'a compressor has no cutoff'
        when m.cutoff is null then 'no cutoff is stated or inferred'
    end as stated_reason,
    if(h.is_compressor, 'a compressor has no cutoff', c.reason) as cutoff_reason,
    case
        when h.is_compressor then 'a compressor has no cutoff'
        when coalesce(t.num_months, 0) < minimum('months of a line')
            then too_few(coalesce(t.num_months, 0), 'month', ' of text', 'months of a line')
    end as trend_reason,
    case
        when h.is_compressor then 'a compressor answers no questions'
        when f.model is null then 'no question was put to it'
        else f.reason
    end as forecast_reason,
    case
        when h.is_compressor then 'a compressor answers no questions'
        when p.model is null then 'no puzzle was put to it'
        else p.reason
    end as puzzle_reason,
    h.num_sources,
    h.num_months,
    h.interval_basis,
    h.resolution
from board as h
left join models as m on h.model = m.model
left join texts as t on h.model = t.model
-- The panel's part of control_adjusted_gap, without what compressors say.
left join panel_tests as g
    on h.model = g.model and g.source is null and g.effect = 'gap' and g.protocol = $protocol
left join ageing as a on h.model = a.model and a.source is null and a.protocol = $protocol
left join estimated_cutoff as c
    on h.model = c.model and c.scope = 'all' and c.protocol = $protocol
left join forecasts as f on h.model = f.model
left join puzzles as p on h.model = p.model
order by h.rank is null and h.model not like 'control:%', h.bits_per_byte nulls last, h.model
