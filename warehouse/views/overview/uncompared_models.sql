-- The models that headline leaves out, with the reason. For left_out_figures and the site's board.
-- Grain: one row per model with losses that is not in compared_cells.
-- Source: docs/metrics.md (Headline, New text).
create or replace view internal.uncompared_models as
select
    l.model,
    case
        when bool_and(l.month is null) then 'only undated text: see corpus_rank'
        when any_value(t.last_month) >= max(l.month)
            then 'no month after ' || strftime(any_value(t.last_month), '%Y-%m')
        when any_value(t.last_month) >= (select min(c.month) from internal.compared_cells as c)
            then
                'may have been trained on compared months, up to '
                || strftime(any_value(t.last_month), '%Y-%m')
        else 'too few cells in common with other models'
    end as reason
from internal.landed_cells as l
left join internal.training_ends as t on l.model = t.model
where l.model not in (select c.model from internal.compared_cells as c)
group by l.model;
