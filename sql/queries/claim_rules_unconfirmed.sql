-- The workers with a recent heartbeat that have not confirmed a revision of the claim rules.
select workers.id
  from :GRAPHILE_WORKER_SCHEMA._private_gw_workers as workers
 where workers.last_heartbeat_at > now() - make_interval(secs => %(recent_seconds)s::double precision)
   and coalesce(workers.claim_rules_revision, 0) < %(revision)s
 order by workers.id
