-- Accuracy of the same models on the same questions, with and without documents.
-- Grain: one row per model, source, protocol; only questions opened after the model's cutoff, with
--   both answers. Answers that cannot be read are wrong.
-- Units: shares. difference is with less without. Its 95 % interval is Newcombe's score interval of
--   paired proportions. num_better: questions that are right with documents alone; num_worse:
--   without alone.
-- Source: Newcombe 1998, "Improved confidence intervals for the difference between binomial
--   proportions based on paired data", Statistics in Medicine 17, method 10 without continuity
--   correction.
with pairs as (
    select
        a.model,
        a.source,
        a.protocol,
        a.is_correct as without_documents,
        b.is_correct as with_documents
    from internal.judged_answers as a
    inner join internal.judged_answers as b
        on
            a.model = b.model
            and a.protocol = b.protocol
            and a.question_id = b.question_id
            and b.source = a.source || ':documents'
    where a.is_test
),

counted as (
    select
        model,
        source,
        protocol,
        count(*) as num_questions,
        count(*) filter (where with_documents) as num_with,
        count(*) filter (where without_documents) as num_without,
        count(*) filter (where with_documents and not without_documents) as num_better,
        count(*) filter (where without_documents and not with_documents) as num_worse,
        count(*) filter (where with_documents and without_documents) as num_both,
        count(*) filter (where not with_documents and not without_documents) as num_neither
    from pairs
    group by model, source, protocol
),

-- correlation: of the two answers (phi); 0 if all answers of a side are alike.
shares as (
    select
        *,
        num_with / num_questions as share_with,
        num_without / num_questions as share_without,
        coalesce(
            (num_both * num_neither - num_better * num_worse)
            / nullif(
                sqrt(
                    1.0 * num_with * (num_questions - num_with)
                    * num_without * (num_questions - num_without)
                ),
                0
            ),
            0
        ) as correlation
    from counted
),

ends as (
    select
        *,
        share_with - wilson_low(num_with, num_questions) as below_with,
        wilson_high(num_with, num_questions) - share_with as above_with,
        share_without - wilson_low(num_without, num_questions) as below_without,
        wilson_high(num_without, num_questions) - share_without as above_without
    from shares
)

select
    model,
    source,
    protocol,
    num_questions,
    share_without as accuracy,
    share_with as accuracy_with_documents,
    share_with - share_without as difference,
    share_with - share_without - sqrt(
        below_with * below_with + above_without * above_without
        - 2 * correlation * below_with * above_without
    ) as difference_low,
    share_with - share_without + sqrt(
        above_with * above_with + below_without * below_without
        - 2 * correlation * above_with * below_without
    ) as difference_high,
    num_better,
    num_worse
from ends
order by model, source, protocol;
