-- Accuracy of models beside people's ratings of difficulty, by puzzle and complexity.
-- Grain: one row per model, puzzle, protocol, split, rules; only rated puzzles.
-- Units: rating is on the study's own scale, higher is more difficult. rank_correlation is
--   Spearman's, of rating and accuracy over the rated puzzles of a model, protocol, split and
--   rules, with mean ranks for ties: negative if the model finds difficult what people do. It is
--   equal in these rows. NULL: see reason.
-- Source: `tidemark land ratings`; docs/metrics.md (Puzzles).
create or replace view papers.scylla_human_difficulty as
with rated as (
    select
        scores.*,
        ratings.complexity,
        ratings.rating,
        ratings.num_raters,
        ratings.reference
    from internal.scylla_accuracy_details as scores
    inner join internal.scylla_cells as cells
        on
            scores.model = cells.model
            and scores.puzzle = cells.puzzle
            and scores.protocol = cells.protocol
    inner join internal.human_difficulty as ratings
        on cells.puzzle = ratings.puzzle and cells.complexity = ratings.complexity
),

ranked as (
    select
        *,
        rank() over (own order by rating) + (count(*) over same_rating - 1) / 2 as rating_rank,
        rank() over (own order by accuracy) + (count(*) over same_accuracy - 1) / 2
            as accuracy_rank
    from rated
    where accuracy is not null
    window
        own as (partition by model, protocol, split, rules),
        same_rating as (partition by model, protocol, split, rules, rating),
        same_accuracy as (partition by model, protocol, split, rules, accuracy)
),

correlations as (
    select
        model,
        protocol,
        split,
        rules,
        count(*) as num_rated,
        case
            when count(*) < minimum('models of a line')
                then too_few(count(*), 'rated puzzle', '', 'models of a line')
            when count(distinct rating) = 1 then 'all ratings are equal'
            when count(distinct accuracy) = 1 then 'all accuracies are equal'
        end as reason,
        corr(rating_rank, accuracy_rank) as rank_correlation
    from ranked
    group by model, protocol, split, rules
)

select
    rated.model,
    rated.puzzle,
    rated.complexity,
    rated.protocol,
    rated.split,
    rated.rules,
    rated.rating,
    rated.accuracy,
    rated.accuracy_low,
    rated.accuracy_high,
    case when correlations.reason is null then correlations.rank_correlation end
        as rank_correlation,
    coalesce(correlations.num_rated, 0) as num_rated,
    rated.num_raters,
    rated.reference,
    rated.level,
    case when rated.accuracy is null then 'nothing was asked' else correlations.reason end
        as reason
from rated
left join correlations
    on
        rated.model = correlations.model
        and rated.protocol = correlations.protocol
        and rated.split = correlations.split
        and rated.rules = correlations.rules;
