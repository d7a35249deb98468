-- Pause these targets; a target that is paused already gets the new end, reason and author, and keeps its start.
-- With an end that is over, nothing changes: such a pause would not pause, and end the one that is there.
insert into :GRAPHILE_WORKER_SCHEMA._private_gw_pauses as pauses (kind, name, until, reason, paused_by)
select target.kind,
       target.name,
       coalesce(%(until)s::timestamptz, now() + make_interval(secs => %(seconds)s::double precision)),
       %(reason)s::text,
       coalesce(%(by)s::text, session_user::text)
  from unnest(%(kinds)s::text[], %(names)s::text[]) as target (kind, name)
 where (%(until)s::timestamptz <= now()) is not true
on conflict (kind, name) do update
  set paused_at = case when pauses.until <= now() then excluded.paused_at else pauses.paused_at end,
      until = excluded.until,
      reason = excluded.reason,
      paused_by = excluded.paused_by
returning kind, name
