-- Whether the site or a model causes a jump of a source's losses.
-- Grain: one row per source, protocol, month that month_difficulty has.
-- verdict: site = the month's difficulty for all models jumps, or the text itself, which
--   control:zstd measures; model = one model (column model) jumps, relative to the others; both;
--   none; unknown = neither can be determined (fewer than 15 months, fewer than two on a side, or
--   too few other models). A jump is named in its month only, not in the months around it.
-- Units: bits per byte. *_jump: mean of the month and the next two less mean of the three before;
--   *_error: its error, by other months; is_*: it is above chance. model is the one with the
--   largest jump in errors. A model's cutoff in the month before explains its jump.
-- Source: docs/metrics.md (Jumps).
create or replace view jump_origin as
with jumps as materialized (
    select * from internal.curve_jumps
),

models_by_size as (
    select
        source,
        protocol,
        month,
        model,
        jump,
        error,
        is_jump,
        is_jump and is_peak as is_here
    from jumps
    where curve = 'model'
    qualify row_number() over (
        partition by source, protocol, month
        order by abs(jump) / greatest(error, 1e-12) desc, model
    ) = 1
),

sided as (
    select
        m.source,
        m.protocol,
        m.month,
        d.jump as difficulty_jump,
        d.error as difficulty_jump_error,
        d.is_jump as is_difficulty,
        c.jump as compressor_jump,
        c.error as compressor_jump_error,
        c.is_jump as is_compressor,
        l.model,
        l.jump as model_jump,
        l.error as model_jump_error,
        l.is_jump as is_model,
        coalesce(d.is_jump and d.is_peak, false) as is_difficulty_here,
        coalesce(c.is_jump and c.is_peak, false) as is_compressor_here,
        coalesce(l.is_here, false) as is_model_here
    from month_difficulty as m
    left join jumps as d
        on
            m.source = d.source
            and m.protocol = d.protocol
            and m.month = d.month
            and d.curve = 'difficulty'
    left join jumps as c
        on
            m.source = c.source
            and m.protocol = c.protocol
            and m.month = c.month
            and c.curve = 'compressor'
    left join models_by_size as l
        on m.source = l.source and m.protocol = l.protocol and m.month = l.month
    where m.source is not null
),

-- A model's own jump moves the difficulty, too, where there are few models.
judged as (
    select
        *,
        is_model_here and abs(model_jump) > coalesce(abs(difficulty_jump), 0) as is_own
    from sided
)

select
    j.source,
    j.protocol,
    j.month,
    case
        when j.difficulty_jump is null and j.compressor_jump is null then 'unknown'
        when j.is_own and j.is_compressor_here then 'both'
        when j.is_own then 'model'
        when j.is_difficulty_here or j.is_compressor_here then 'site'
        when j.difficulty_jump is null then 'unknown'
        else 'none'
    end as verdict,
    j.difficulty_jump,
    j.difficulty_jump_error,
    j.is_difficulty,
    j.compressor_jump,
    j.compressor_jump_error,
    j.is_compressor,
    j.model,
    j.model_jump,
    j.model_jump_error,
    j.is_model,
    m.cutoff
from judged as j
left join models as m on j.model = m.model;
