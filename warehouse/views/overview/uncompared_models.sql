-- The models that headline leaves out, with the reason.
-- Grain: one row per model with losses that is not in compared_cells.
-- View unmeasured has these rows, with left_out_of 'headline'.
-- Source: docs/metrics.md (Headline, New text).
create or replace view internal.uncompared_models as
with compared as materialized (
    select
        source,
        month,
        any_value(fingerprint) as fingerprint
    from main.compared_cells
    group by source, month
),

eligible as (
    select
        e.model,
        count(c.source) as num_common
    from internal.eligible_cells as e
    left join compared as c
        on e.source = c.source and e.month = c.month and e.fingerprint = c.fingerprint
    group by e.model
)

select
    l.model,
    any_value(e.model) is not null as has_sound_cells,
    case
        when bool_and(l.month is null) then 'only undated text: see corpus_rank'
        when not bool_or(l.protocol = 'default') then 'no losses under the default protocol'
        when bool_or(l.num_bytes > 0) and not bool_or(l.num_chars > 0)
            then 'no text: only images or recordings'
        when any_value(e.model) is null
            then 'no sound cell: lossy tokenizer, suspect cells, or losses that are not finite'
        when any_value(t.last_month) >= max(l.month)
            then 'no month after ' || strftime(any_value(t.last_month), '%Y-%m')
        when any_value(t.last_month) >= (select min(c.month) from compared as c)
            then
                'may have been trained on compared months, up to '
                || strftime(any_value(t.last_month), '%Y-%m')
        when not exists (select 1 from compared)
            then 'no month in common with another model that is new to both'
        else
            'too few cells in common with other models: '
            || any_value(e.num_common) || ' of ' || (select count(*) from compared)
    end as reason
from internal.landed_cells as l
left join main.training_ends as t on l.model = t.model
left join eligible as e on l.model = e.model
where l.model not in (select c.model from main.compared_cells as c)
group by l.model;
