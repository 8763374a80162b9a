-- Delete the landed rates that the changed rates replace.
delete from internal.published_rates as landed
using changed_published_rates as changed
where
    landed.model = changed.model
    and landed.source = changed.source
    and landed.month = changed.month;
