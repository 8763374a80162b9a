-- Insert the tokenizer of scored cells if it differs from the landed one: in a lake, an unneeded
-- delete would conflict with other writers.
-- Input: record_to_land, Arrow data with the columns of the table.
delete from tokenizers as landed
using record_to_land as given
where
    landed.model = given.model
    and landed.revision = given.revision
    and (
        landed.vocabulary_size <> given.vocabulary_size
        or landed.start_token is distinct from given.start_token
        or landed.has_byte_tokens <> given.has_byte_tokens
    );

insert into tokenizers by name
select distinct given.*
from record_to_land as given
anti join tokenizers as landed
    on given.model = landed.model and given.revision = landed.revision;
