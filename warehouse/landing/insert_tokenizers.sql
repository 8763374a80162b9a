-- Land the tokenizer that cells were scored with, where it is not landed just so: in a lake,
-- deleting what others have landed would make them try again.
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
