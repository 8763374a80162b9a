-- Every column of monthly_loss. Units and NULLs: see that view.
-- Grain: one row per model, source, protocol, month. Undated text is left out.
-- Only sources of calendar months: views read this for means over sources, and steps of a month.
create or replace view internal.monthly_loss_details as
select * exclude (period)
from internal.period_loss
where period = 'month';
