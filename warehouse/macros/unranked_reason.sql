-- Why headline does not rank a model; NULL if it does.
-- Parameters: is_ranked; model; basis, which months are compared.
create or replace macro unranked_reason(is_ranked, model, basis) as
    case
        when is_ranked then null
        when is_compressor(model) then 'not ranked: a compressor'
        else 'not ranked: ' || basis
    end;
