-- Insert the protocol of published rates; their scoring methods are unknown.
insert into protocols (protocol, description)
with wanted as (
    select
        'published' as protocol,
        'rates as others have published them; `tidemark land-published`' as description
)

select
    wanted.protocol,
    wanted.description
from wanted
anti join protocols as named on wanted.protocol = named.protocol;
