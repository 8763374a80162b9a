-- A residual is multiplied by that of the month before, not across a hole or the split.
select
    model,
    scope,
    count(*) as num_months,
    round(sum(residual * residual), 9) as squares,
    count(product) as num_products,
    round(sum(product), 9) as products
from internal.split_curves_at(date '2024-07-01')
group by model, scope;
