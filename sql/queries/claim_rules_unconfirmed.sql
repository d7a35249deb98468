-- The workers that may start jobs and have not confirmed a revision of the claim rules; null: the current one.
-- A worker starts no job once its last heartbeat is older than its lease, which it reports; `recent_seconds` is for
-- those that report none. The limit keeps a number that no worker writes within the range of an interval.
select workers.id
  from :GRAPHILE_WORKER_SCHEMA._private_gw_workers as workers
 where workers.last_heartbeat_at > now() - make_interval(
         secs => case jsonb_typeof(workers.metadata -> 'lease_seconds')
                   when 'number' then least((workers.metadata ->> 'lease_seconds')::numeric, 31536000)::double precision
                   else %(recent_seconds)s::double precision
                 end
       )
   and coalesce(workers.claim_rules_revision, 0) < coalesce(
         %(revision)s::bigint,
         (select rules.revision from :GRAPHILE_WORKER_SCHEMA._private_gw_claim_rules as rules),
         0
       )
 order by workers.id
