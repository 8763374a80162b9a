-- Delete rows of months after the release's month; the rest is estimated again.
delete from internal.month_shortfalls
where month > cast($last as date);
