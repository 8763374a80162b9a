-- Delete tags that are not in the file of groups.
-- Input: tags_to_load, Arrow data of reference/forecasts/tag_groups.csv.
delete from internal.tag_groups
where
    (tag, question_group) not in (
        select (tag, question_group)
        from tags_to_load
    );
