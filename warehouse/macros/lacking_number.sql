-- Why a figure has no interval: there is less of something than it needs; NULL if there is enough.
-- Parameters: as in too_few.
create or replace macro lacking_number(num, thing, place, name) as
    case
        when num < minimum(name) then 'no interval: ' || too_few(num, thing, place, name)
    end;
