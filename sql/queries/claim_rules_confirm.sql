-- Record which revision of the claim rules a worker applies.
update :GRAPHILE_WORKER_SCHEMA._private_gw_workers as workers
   set claim_rules_revision = %(revision)s::bigint
 where workers.id = %(worker_id)s::text
returning workers.id
