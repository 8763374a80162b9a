-- Every two models on the documents that both were scored on; source is NULL for the mean.
-- Without an interval over time (p is NULL), low and high are about documents of these months.
-- basis: which months are compared
select
    model,
    other_model as other,
    source,
    round(difference, 5) as difference,
    round(coalesce(difference_low, difference_low_documents), 5) as low,
    round(coalesce(difference_high, difference_high_documents), 5) as high,
    round(p_value_adjusted, 4) as p,
    num_documents as n,
    case when source is null then basis end as basis,
    case when difference is null or p_value_adjusted is null then reason end as reason
from model_difference
where protocol = $protocol and (difference is not null or source is null)
order by model, other, source nulls first
