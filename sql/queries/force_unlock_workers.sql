-- Take every lock from the named pools; whatever they run may then run a second time elsewhere.
select :GRAPHILE_WORKER_SCHEMA.force_unlock_workers(%(worker_ids)s::text[])
