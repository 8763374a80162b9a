-- The group (one of four) of each tag of questions; tags are compared in lower case.
-- Grain: one row per tag.
-- Source: reference/forecasts/tag_groups.csv; groups and Good Judgment Open tags: Zhu et al. 2024,
--   Table 16.
create table if not exists internal.tag_groups (
    tag varchar not null,
    question_group varchar not null
);
