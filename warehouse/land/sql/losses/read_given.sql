-- Define incoming losses as the given data, read in place. NaN becomes NULL ("not measured").
-- Input: losses_to_land, data of schema LOSSES.
create or replace temp view incoming as
select
    model,
    revision,
    source,
    month,
    document_id,
    chunk_index,
    protocol,
    case when not isnan(nll_nats) then nll_nats end as nll_nats,
    num_tokens,
    num_chars,
    num_bytes,
    case when nll_nats is null or isnan(nll_nats) then reason end as reason
from losses_to_land;
