-- Scores and critical level by the paper's method, with the corrected figures.
-- Grain: one row per model, protocol, ood_split, level (1 to 5).
-- Units: as scylla_scores. paper_*: answers are read by the paper's rules. Accuracy is over the
--   items from which an answer was read; 0 if these are fewer than a tenth. The critical level has
--   the largest gap, without a test; the lowest level on a tie. score and critical_level: the
--   corrected figures under the strict rules.
-- Source: Qi et al. 2024 and its released code; docs/metrics.md (Puzzles).
create or replace view papers.scylla_paper_scores as
with counted as (
    select
        model,
        puzzle,
        protocol,
        split,
        count(*) filter (where paper_status = 'correct') as num_correct,
        count(*) filter (where paper_status in ('correct', 'wrong')) as num_parsed,
        count(*) as num_items
    from internal.scylla_answers
    group by model, puzzle, protocol, split
),

accuracies as (
    select
        c.model,
        c.puzzle,
        c.protocol,
        c.split,
        cells.level,
        case when 10 * c.num_parsed >= c.num_items then c.num_correct / c.num_parsed else 0 end
            as accuracy
    from counted as c
    inner join internal.scylla_cells as cells
        on c.model = cells.model and c.puzzle = cells.puzzle and c.protocol = cells.protocol
    where cells.level is not null
),

levels as (
    select
        id.model,
        id.protocol,
        ood.split as ood_split,
        id.level,
        avg(id.accuracy) as id_accuracy,
        avg(ood.accuracy) as ood_accuracy,
        avg(greatest(id.accuracy - ood.accuracy, 0)) as gap,
        avg(ood.accuracy - greatest(id.accuracy - ood.accuracy, 0)) as score
    from accuracies as id
    inner join accuracies as ood
        on id.model = ood.model and id.puzzle = ood.puzzle and id.protocol = ood.protocol
    where id.split = 'id' and ood.split <> 'id'
    group by id.model, id.protocol, ood.split, id.level
)

select
    s.model,
    s.protocol,
    s.ood_split,
    s.level,
    s.num_puzzles,
    s.num_expected,
    p.id_accuracy as paper_id_accuracy,
    p.ood_accuracy as paper_ood_accuracy,
    p.gap as paper_gap,
    p.score as paper_score,
    s.score,
    p.score - s.score as difference,
    arg_min(p.level, (-round(p.gap, 12), p.level))
        over (partition by s.model, s.protocol, s.ood_split) as paper_critical_level,
    ours.critical_level
from internal.scylla_scores_details as s
left join levels as p
    on
        s.model = p.model
        and s.protocol = p.protocol
        and s.ood_split = p.ood_split
        and s.level = p.level
left join main.scylla_critical_complexity as ours
    on
        s.model = ours.model
        and s.protocol = ours.protocol
        and s.ood_split = ours.ood_split
        and s.rules = ours.rules
where s.rules = 'strict' and s.level is not null;
