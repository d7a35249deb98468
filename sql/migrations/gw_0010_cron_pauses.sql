-- Pauses of recurring tasks.

alter table :GRAPHILE_WORKER_SCHEMA._private_gw_pauses
  drop constraint if exists gw_pauses_kind_check,
  drop constraint if exists gw_pauses_target_check,
  add constraint gw_pauses_target_check check (kind in ('task', 'queue', 'flag', 'cron', 'all'));
