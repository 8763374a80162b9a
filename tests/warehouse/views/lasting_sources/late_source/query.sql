-- Model a has a source of twelve months, so one of three months is left out. Model b has none of
--   twelve, so all with two months or more stay.
from internal.lasting_sources;
