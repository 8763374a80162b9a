-- Drop the tags that the file of groups does not hold (any more).
-- Input: tags_to_load, Arrow data of reference/forecasts/tag_groups.csv.
delete from tag_groups
where
    (tag, question_group) not in (
        select (tag, question_group)
        from tags_to_load
    );
