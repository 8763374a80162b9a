-- Set the release of all imported answers of a model to that of the staged answers.
update forecast_answers
set released = given.released
from (
    select distinct
        model,
        released
    from imported_answers
    where released is not null
) as given
where
    forecast_answers.model = given.model
    and forecast_answers.protocol = 'given'
    and forecast_answers.released is distinct from given.released;
