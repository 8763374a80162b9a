-- The kind of a document inside its source: the first part of its category, and its language.
-- Parameters: category, such as cs.CL or speech; language, such as en or code:python. Either may be
-- NULL; if both are, the kind is `unknown`.
create or replace macro kind_of(category, language) as
    coalesce(nullif(concat_ws(', ', split_part(category, '.', 1), language), ''), 'unknown');
