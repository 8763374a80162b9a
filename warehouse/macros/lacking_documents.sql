-- Why a figure over months has no interval for other documents; NULL if it has one.
-- Parameter: error, half of that interval. A month with a single cluster has no error of its own;
--   pooled_errors lends one if the source has enough other months.
create or replace macro lacking_documents(error) as
    case
        when error is null
            then
                'no interval over documents: a month has a single cluster; '
                || minimum('months with an error') || ' months of its source with more are needed'
    end;
