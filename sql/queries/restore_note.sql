-- Note which job was added for a deleted one.
update :GRAPHILE_WORKER_SCHEMA._private_gw_unique as restored
   set job_id = %(id)s::bigint
 where restored.key = %(once)s::text
returning restored.job_id
