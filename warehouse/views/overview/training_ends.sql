-- The month up to which a model may have been trained on text, and what says so.
-- Grain: one row per model.
-- last_month: text of later months is new to the model. It is the last month of training text: the
--   stated one (models.cutoff), or the end of the measured one's interval if the stated one is
--   before that interval, or missing. Else it is the month of release. NULL for a compressor, which
--   is never trained, and where nothing is known.
-- known_by: stated, measured, release, compressor or nothing.
-- Source: docs/metrics.md (New text).
create or replace view training_ends as
with measured as (
    select
        model,
        estimated_cutoff_low,
        estimated_cutoff_high
    from estimated_cutoff
    where protocol = 'default' and scope = 'all' and estimated_cutoff is not null
),

judged as (
    select
        m.model,
        m.cutoff,
        m.released,
        e.estimated_cutoff_high,
        case
            when is_compressor(m.model) then 'compressor'
            when m.cutoff < e.estimated_cutoff_low then 'measured'
            when m.cutoff is not null then 'stated'
            when e.estimated_cutoff_high is not null then 'measured'
            when m.released is not null then 'release'
            else 'nothing'
        end as known_by
    from models as m
    left join measured as e on m.model = e.model
)

select
    model,
    cast(
        case known_by
            when 'stated' then cutoff
            when 'measured' then estimated_cutoff_high
            when 'release' then date_trunc('month', released)
        end as date
    ) as last_month,
    known_by
from judged;
