from internal.neighbour_predictions
where source = 'a' and month = '2024-07-01';
