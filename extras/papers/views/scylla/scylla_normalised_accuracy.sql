-- Accuracy divided by a score of memorisation: Min-K% of the right answers' tokens.
-- Grain: one row per model, puzzle, protocol, split, top_percent, min_k_percent. protocol is that
--   of the answers; likelihood_protocol is that of the likelihoods, of the same items.
-- Units: top_percent of the items are kept, 60, 80 or 100: those with the highest probability of
--   the right answer. An item's score is the geometric mean of the probabilities of the
--   min_k_percent of the answer's tokens with the lowest, at least one token. memorisation is the
--   mean score of the kept items, accuracy the share that is right by the strict rules, and
--   normalised_accuracy = accuracy / memorisation. Its interval is that of a ratio of means
--   (linearised), normal, 95 %. reason: NULL for fewer than 2 items. Items with an error are left
--   out.
-- Source: Qi et al. 2024, code (7_normalize_acc.py); docs/metrics.md (Puzzles).
create or replace view papers.scylla_normalised_accuracy as
with answers as (
    select
        model,
        puzzle,
        protocol,
        split,
        item,
        (status = 'correct')::integer as is_right,
        regexp_extract(
            protocol,
            '^(?:zero-shot-cot|(?:few-shot|mixed|varied)-[0-9])(?:-second)?(.*)$',
            1
        ) as sampling
    from internal.scylla_answers
    where status <> 'error'
),

ranked as (
    select
        likelihoods.*,
        answers.protocol as answers_protocol,
        answers.is_right,
        row_number()
            over (own order by likelihoods.probability desc, likelihoods.item asc)
            as place,
        count(*) over own as num_all
    from internal.scylla_item_likelihoods as likelihoods
    inner join answers
        on
            likelihoods.model = answers.model
            and likelihoods.puzzle = answers.puzzle
            and likelihoods.split = answers.split
            and likelihoods.item = answers.item
            and likelihoods.sampling = answers.sampling
    window own as (
        partition by
            likelihoods.model, likelihoods.puzzle, likelihoods.protocol, likelihoods.split,
            answers.protocol
    )
),

tops as (select unnest([60, 80, 100]) as top_percent),

shares as (select unnest([10, 30, 50, 70, 90]) as min_k_percent),

scored as (
    select
        ranked.*,
        tops.top_percent,
        shares.min_k_percent,
        exp(
            -list_avg(
                ranked.sorted_nats[
                    1:greatest(1, len(ranked.sorted_nats) * shares.min_k_percent // 100)
                ]
            )
        ) as score
    from ranked
    cross join tops
    cross join shares
    where ranked.place <= ranked.num_all * tops.top_percent // 100
),

means as (
    select
        *,
        avg(is_right) over own as accuracy,
        avg(score) over own as memorisation,
        accuracy / nullif(memorisation, 0) as ratio
    from scored
    window own as (
        partition by
            model, puzzle, answers_protocol, protocol, split, top_percent, min_k_percent
    )
),

ratios as (
    select
        model,
        puzzle,
        answers_protocol,
        protocol,
        split,
        level,
        top_percent,
        min_k_percent,
        accuracy,
        memorisation,
        ratio,
        sqrt(sum(pow(is_right - ratio * score, 2)) / nullif(count(*) * (count(*) - 1), 0))
        / nullif(any_value(memorisation), 0) as error,
        count(*) as num_items
    from means
    group by all
)

select
    model,
    puzzle,
    answers_protocol as protocol,
    split,
    top_percent,
    min_k_percent,
    ratio as normalised_accuracy,
    case when error is not null then greatest(ratio - 1.959963984540054e0 * error, 0) end
        as normalised_accuracy_low,
    ratio + 1.959963984540054e0 * error as normalised_accuracy_high,
    accuracy,
    memorisation,
    num_items,
    level,
    protocol as likelihood_protocol,
    case
        when ratio is null then 'memorisation is 0'
        else lacking_number(num_items, 'item', '', 'answers of a mean')
    end as reason
from ratios;
