-- The level that corresponds to the accuracy of each probe.
-- probe: puzzle whose algorithms span several levels
select
    model,
    protocol,
    replace(puzzle, '_', ' ') as probe,
    level_equivalent,
    replace(status, '_', ' ') as status
from papers.scylla_probes
where rules = 'strict' and ood_split = 'ood'
order by model, protocol, probe
