-- Bootstrap replicates of the means over the puzzles of a level.
-- Grain: one row per model, protocol, ood_split, rules, level (NULL: all anchors), replicate.
-- Units: as scylla_level_figures.
create or replace view internal.scylla_replicate_levels as
select
    r.model,
    r.protocol,
    r.ood_split,
    r.rules,
    cells.level,
    r.replicate,
    avg(greatest(r.id_accuracy - r.ood_accuracy, 0)) as gap,
    avg(r.ood_accuracy - greatest(r.id_accuracy - r.ood_accuracy, 0)) as score
from internal.scylla_replicates as r
inner join
    internal.scylla_cells as cells
    on r.model = cells.model and r.puzzle = cells.puzzle and r.protocol = cells.protocol
where cells.level is not null
group by
    grouping sets (
        (r.model, r.protocol, r.ood_split, r.rules, r.replicate, cells.level),
        (r.model, r.protocol, r.ood_split, r.rules, r.replicate)
    );
