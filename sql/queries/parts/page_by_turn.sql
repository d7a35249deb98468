-- The page of a chunk: the number of jobs read, the matching ids, and where the page and the chunk ended.
found as (
  select * from scanned where matches order by turn limit %(limit)s
),
ends as (
  select * from scanned order by turn desc limit 1
),
full_ends as (
  select * from found order by turn desc limit 1
)
select
  (select count(*) from scanned),
  array(select id from found order by turn),
  (select array[priority::text, (run_at at time zone 'UTC')::text, place::text] from full_ends),
  (select array[priority::text, (run_at at time zone 'UTC')::text, place::text] from ends)
