-- Delete the rows that a cell replaces. Parameters: model, puzzle, protocol.
delete from internal.scylla_likelihoods
where model = $model and puzzle = $puzzle and protocol = $protocol;
