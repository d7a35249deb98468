-- The workers with a recent heartbeat that have not confirmed a revision of the claim rules; null: the current one.
select workers.id
  from :GRAPHILE_WORKER_SCHEMA._private_gw_workers as workers
 where workers.last_heartbeat_at > now() - make_interval(secs => %(recent_seconds)s::double precision)
   and coalesce(workers.claim_rules_revision, 0) < coalesce(
         %(revision)s::bigint,
         (select rules.revision from :GRAPHILE_WORKER_SCHEMA._private_gw_claim_rules as rules),
         0
       )
 order by workers.id
