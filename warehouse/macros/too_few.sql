-- A reason: how many of something there are, and how many are needed.
-- Parameters: num, the number; thing, its name in the singular; place, what follows the name; name,
--   that of minimum.
create or replace macro too_few(num, thing, place, name) as
    num || ' ' || thing || case when num = 1 then '' else 's' end || place || '; '
    || minimum(name) || ' are needed';
