-- The class of size that a model is compared within; NULL where its parameters are not known.
-- Parameter: parameters, a count. "7B" is what its makers round down to 7 billion or less, so that
--   models of 6.7 to 7.6 billion are of one class and at most 7B is what is below 8 billion.
-- Source: Uncheatable Eval's tables of models of about 1.5, 3 and 7 billion; above them, Li et al.
--   2024, Table 3, which sets at most 7B and larger apart.
create or replace macro size_class(parameters) as
    case
        when parameters < 2e9 then 'below 2B'
        when parameters < 5e9 then '2B to 5B'
        when parameters < 8e9 then '5B to 8B'
        when parameters is not null then '8B and above'
    end;
