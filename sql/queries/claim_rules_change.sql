-- Increment the revision of the claim rules and notify all workers; returns the new revision.
-- The row stays locked until the transaction ends, so changes are made one after the other.
with changed as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_claim_rules as rules (id, revision)
  values (1, 1)
  on conflict (id) do update
    set revision = rules.revision + 1
  returning revision
)
select changed.revision, pg_notify('gw:rules', '')::text from changed
