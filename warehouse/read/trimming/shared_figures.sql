-- Delete rows of months after the release's month; the rest is estimated again.
delete from internal.shared_figures
where month > cast($last as date);
