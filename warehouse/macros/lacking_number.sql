-- Why a figure has no interval, such as "2 months; 3 are needed"; NULL if the numbers are enough.
-- Parameters: as in too_few.
create or replace macro lacking_number(num, thing, place, name) as
    case
        when num < minimum(name) then 'no interval: ' || too_few(num, thing, place, name)
    end;
