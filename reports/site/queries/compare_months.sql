-- Difference of two models in each month of a source, after both cutoffs, in which both have the
-- same documents.
-- low and high: would other documents of the month say the same? Pairs of the given models alone.
-- other: the model that model is compared with
-- difference: loss of model less that of other, on the same documents [bits per byte]
-- num_documents: documents of the month that both were scored on
-- low: lower end of the 95 % interval over documents of the month [bits per byte]
-- high: upper end of the 95 % interval over documents of the month [bits per byte]
select
    model,
    other_model as other,
    source,
    month,
    difference,
    difference_low_documents as low,
    difference_high_documents as high,
    num_documents
from month_difference_at(from_json($models, '["varchar"]'))
where protocol = $protocol
order by model, other, source, month
