-- The number of rows that violate schema LOSSES (core/schemas reports the row and the rule).
select count(*) as num_rows
from losses_to_land
where
    model is null or model = ''
    or revision is null
    or source is null or source = ''
    or document_id is null or document_id = ''
    or protocol is null or protocol = ''
    or strlen(model) > 4096
    or strlen(revision) > 4096
    or strlen(source) > 4096
    or strlen(document_id) > 4096
    or strlen(protocol) > 4096
    or day(month) <> 1 or year(month) not between 1 and 9999
    or chunk_index is null or chunk_index < 0
    or coalesce(num_tokens not between 0 and 1099511627775, true)
    or coalesce(num_chars not between 0 and 1099511627775, true)
    or coalesce(num_bytes not between 0 and 1099511627775, true)
    or (not isnan(nll_nats) and not (nll_nats >= 0 and nll_nats < 70368744177664))
    or ((nll_nats is null or isnan(nll_nats)) and coalesce(reason, '') = '');
