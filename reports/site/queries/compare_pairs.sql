-- Every two models on the documents that both were scored on; source is NULL for the mean.
select
    model,
    other_model as other,
    source,
    round(difference, 5) as difference,
    round(difference_low, 5) as low,
    round(difference_high, 5) as high,
    round(p_value_adjusted, 4) as p,
    num_documents as n
from model_difference
where protocol = $protocol
order by model, other, source nulls first
