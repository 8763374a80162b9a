-- Give all foreign answers of a model the release that the staged ones have.
update forecast_answers
set released = given.released
from (
    select distinct
        model,
        released
    from foreign_answers
    where released is not null
) as given
where
    forecast_answers.model = given.model
    and forecast_answers.protocol = 'given'
    and forecast_answers.released is distinct from given.released;
