-- Delete the loaded ratings that the changed ratings replace.
delete from internal.human_difficulty as loaded
using changed_human_difficulty as changed
where loaded.puzzle = changed.puzzle and loaded.complexity = changed.complexity;
