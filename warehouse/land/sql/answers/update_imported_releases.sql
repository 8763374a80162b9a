-- Copy the release in a model's staged answers to all its imported answers.
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
