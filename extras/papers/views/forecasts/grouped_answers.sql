-- Judged answers by group of tags; a question with tags of two groups is in both groups.
-- Grain: one row per model, source, protocol, question_id, question_group.
-- Units: question_group is `none` for a question without a tag in tag_groups.
-- Source: Zhu et al. 2024, Table 16.
create or replace view internal.grouped_answers as
with tagged as (
    select
        model,
        source,
        protocol,
        question_id,
        opened,
        is_test,
        is_correct,
        expected,
        unnest(case when len(tags) > 0 then tags else [''] end) as tag
    from internal.judged_answers
),

named as (
    select
        t.* exclude (tag),
        g.question_group
    from tagged as t
    left join internal.tag_groups as g on lower(trim(t.tag)) = g.tag
)

select distinct
    * exclude (question_group),
    coalesce(question_group, 'none') as question_group
from named
qualify
    question_group is not null
    or count(question_group) over (partition by model, source, protocol, question_id) = 0;
