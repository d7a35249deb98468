-- Delete the pauses of these targets.
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_pauses as pauses
 using unnest(%(kinds)s::text[], %(names)s::text[]) as target (kind, name)
 where pauses.kind = target.kind
   and pauses.name = target.name
returning pauses.kind, pauses.name
