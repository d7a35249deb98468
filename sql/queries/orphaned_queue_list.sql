-- The queues that are locked although none of their jobs is: the name, who has locked it, and for how many seconds.
with
\ir parts/orphaned_queues.sql
select orphaned.queue_name, orphaned.locked_by, date_part('epoch', now() - orphaned.locked_at)
  from orphaned
 order by orphaned.locked_at, orphaned.queue_name
 limit 1000
