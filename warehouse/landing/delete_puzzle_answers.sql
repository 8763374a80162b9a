-- Forget what a cell takes the place of. Parameters: model, puzzle, protocol.
delete from scylla_answers
where model = $model and puzzle = $puzzle and protocol = $protocol;
