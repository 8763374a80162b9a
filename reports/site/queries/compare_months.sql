-- Difference of two models in each month of a source, after both cutoffs, in which both have the
-- same documents.
-- low and high: would other documents of the month say the same? Pairs of the given models alone.
-- other: the model that model is compared with
-- low: lower end of the 95 % interval over documents of the month [bits per byte]
-- high: upper end of the 95 % interval over documents of the month [bits per byte]
with chosen as (
    select unnest(from_json($models, '["varchar"]')) as model
),

deviations as (
    select
        model,
        source,
        month,
        list(deviation order by replicate) as deviations
    from internal.replicate_deviations
    where protocol = $protocol and model in (select c.model from chosen as c)
    group by model, source, month
)

select
    p.model,
    p.other_model as other,
    p.source,
    p.month,
    p.difference,
    p.difference - t_975(p.degrees_of_freedom) * paired_error(a.deviations, b.deviations) as low,
    p.difference + t_975(p.degrees_of_freedom) * paired_error(a.deviations, b.deviations) as high,
    p.num_documents
from internal.paired_cells as p
inner join chosen as one on p.model = one.model
inner join chosen as two on p.other_model = two.model
left join deviations as a on p.model = a.model and p.source = a.source and p.month = a.month
left join deviations as b on p.other_model = b.model and p.source = b.source and p.month = b.month
where p.protocol = $protocol and p.has_same_documents
order by p.model, other, p.source, p.month
