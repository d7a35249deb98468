-- As many of the locked jobs as fit into the memory set aside for a claim, one at least; `:ORDER` is their order.
chosen as materialized (
  select sized.id, sized.job_queue_id
    from (
           select locked.*, sum(locked.bytes) over (:ORDER rows unbounded preceding) - locked.bytes as bytes_before
             from :LOCKED as locked
         ) as sized
   where sized.bytes_before < %(most_bytes)s
),
