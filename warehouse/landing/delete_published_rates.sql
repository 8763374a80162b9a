-- Forget what the changed rates take the place of.
delete from published_rates as landed
using changed_published_rates as changed
where
    landed.model = changed.model
    and landed.source = changed.source
    and landed.month = changed.month;
