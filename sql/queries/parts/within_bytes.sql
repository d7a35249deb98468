-- As many of the locked jobs as fit into the memory set aside for a claim, one at least; `:ORDER` is their order.
-- The running total is only taken where the jobs do not fit: it would cost each claim of small jobs 4 percent.
chosen as materialized (
  select locked.id, locked.job_queue_id
    from :LOCKED as locked
   where (select sum(bytes) from :LOCKED) <= %(max_bytes)s::bigint
  union all
  select sized.id, sized.job_queue_id
    from (
           select locked.*, sum(locked.bytes) over (:ORDER rows unbounded preceding) - locked.bytes as bytes_before
             from :LOCKED as locked
            where (select sum(bytes) from :LOCKED) > %(max_bytes)s::bigint
         ) as sized
   where sized.bytes_before < %(max_bytes)s::bigint
),
