-- Stage imported answers: the file's texts, and their parsed values (NULL if a text is invalid).
-- Input: rows_to_land, Arrow data of texts. Parameter: source, for rows without one.
-- Lists may be written as JSON, or with | or ; between the values.
create or replace temp table staged_imported_answers as
select
    row_number,
    nullif(trim(model), '') as model,
    coalesce(nullif(trim(source), ''), $source) as source,
    nullif(trim(question_id), '') as question_id,
    'given' as protocol,
    release_date as given_released,
    -- A release with a month but no day counts as the first day, as in the catalogue.
    day_of(
        case
            when regexp_full_match(trim(release_date), '\d{4}-\d{2}')
                then trim(release_date) || '-01'
            else release_date
        end
    ) as released,
    opened as given_opened,
    day_of(opened) as opened,
    closed as given_closed,
    day_of(closed) as closed,
    resolved as given_resolved,
    day_of(resolved) as resolved,
    num_options as given_options,
    try_cast(num_options as double) as num_options,
    is_correct as given_correct,
    case
        when try_cast(is_correct as double) = 1 then true
        when try_cast(is_correct as double) = 0 then false
        when try_cast(is_correct as double) is null then try_cast(trim(is_correct) as boolean)
    end as is_correct,
    probabilities as given_probabilities,
    list_transform(
        string_split_regex(trim(probabilities, '[] '), '\s*[,;|]\s*'),
        lambda part: try_cast(part as double)
    ) as probabilities,
    chosen_option as given_chosen,
    try_cast(chosen_option as double) as chosen_index,
    correct_option as given_answer,
    try_cast(correct_option as double) as answer_index,
    p_correct as given_p_correct,
    try_cast(p_correct as double) as p_correct,
    list_filter(
        list_transform(
            string_split_regex(
                trim(tags, '[] '), case when trim(tags) like '[%' then '[;|,]' else '[;|]' end
            ),
            lambda tag: trim(tag, ' ''"')
        ),
        lambda tag: tag <> ''
    ) as tags
from rows_to_land;
