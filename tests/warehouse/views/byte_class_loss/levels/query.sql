select * from byte_class_loss
where model = 's' or (model = 'a' and month in ('2024-06-01', '2024-07-01'))
