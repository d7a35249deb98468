-- The page of a chunk: the number of jobs read, the matching ids, and where the page and the chunk ended.
-- `:PLACE` is the place of a job in the order.
found as (
  select * from scanned where matches order by turn limit %(limit)s
)
select
  (select count(*) from scanned),
  array(select id from found order by turn),
  (select array[:PLACE] from found order by turn desc limit 1),
  (select array[:PLACE] from scanned order by turn desc limit 1)
