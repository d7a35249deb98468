-- Drop the waiting jobs of these groups; the members stay. Rows are locked in the order in which the ends of members lock them.
with cancelled as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
   where waiting.id = any(array(
           select locked.id
             from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as locked
            where locked.id = any(%(ids)s::bigint[])
            order by locked.id
              for update
         ))
  returning waiting.id
),
edges as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges
   using cancelled
   where edges.waiting_id = cancelled.id
)
select cancelled.id from cancelled order by cancelled.id
