-- Which of the four groups of questions a tag belongs to; tags are compared in lower case.
-- Grain: one row per tag.
-- Source: reference/tag_groups.csv; the groups and Good Judgment Open's tags are those of Zhu et
--   al. 2024, Table 16.
create table if not exists tag_groups (
    tag varchar not null,
    question_group varchar not null
);
