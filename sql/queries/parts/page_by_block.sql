-- The page of a chunk: the number of jobs read, the matching ids, where the page ended, and where the next chunk begins.
-- Jobs that share priority and run_at come in order of their blocks. Within a block the index has the order of the rows'
-- first versions, which an update in place leaves as it is, and `ctid` the order of the present ones. So the jobs of a
-- block are ordered by id, and a chunk has whole blocks: it reads as many jobs more than asked for as a block can hold,
-- and leaves those of the last block to the next chunk.
cut as (
  select scanned.priority, scanned.run_at, (scanned.row::text::point)[0]::bigint as block
    from scanned
   where scanned.turn = %(chunk_size)s + current_setting('block_size')::int / 28
),
whole as materialized (
  select scanned.*
    from scanned
    left join (select cut.*, format('(%%s,0)', cut.block)::tid as row from cut) as cut on true
   where cut.row is null
      or scanned.row < cut.row
      or (scanned.priority, scanned.run_at) <> (cut.priority, cut.run_at)
),
candidates as (
  select whole.id, whole.priority, whole.run_at, (whole.row::text::point)[0]::bigint as block
    from whole
   where whole.matches
   order by whole.turn
   limit %(limit)s + current_setting('block_size')::int / 28
),
found as (
  select candidates.*, row_number() over (order by priority, run_at, block, id) as turn
    from candidates
   order by turn
   limit %(limit)s
)
select
  (select count(*) from whole),
  array(select id from found order by turn),
  (
    select array[priority::text, (run_at at time zone 'UTC')::text, block || ',' || id]
      from found
     order by turn desc
     limit 1
  ),
  (select array[priority::text, (run_at at time zone 'UTC')::text, block || ',0'] from cut)
