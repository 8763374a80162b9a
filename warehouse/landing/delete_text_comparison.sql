-- Forget what comparing two months gave.
delete from text_comparisons
where
    source = $source
    and month = cast($month as date)
    and other_month = cast($other_month as date);
