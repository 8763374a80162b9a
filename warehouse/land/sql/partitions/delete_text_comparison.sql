-- Delete the result of comparing two months.
delete from internal.text_comparisons
where
    source = $source
    and month = cast($month as date)
    and other_month = cast($other_month as date);
