-- The size class of a model, for comparisons; NULL if the number of parameters is unknown.
-- Parameter: parameters, a count. "7B" includes sizes that vendors round down to 7 billion: models
--   of 6.7 to 7.6 billion are in one class, and "at most 7B" means below 8 billion.
-- Source: Uncheatable Eval's tables of models of about 1.5, 3 and 7 billion; above them, Li et al.
--   2024, Table 3, which separates at most 7B from larger models.
create or replace macro size_class(parameters) as
    case
        when parameters < 2e9 then 'below 2B'
        when parameters < 5e9 then '2B to 5B'
        when parameters < 8e9 then '5B to 8B'
        when parameters is not null then '8B and above'
    end;
