-- Stop if workers lock jobs or queues: the next steps would change the tables under them.
-- The table lock comes first, so that no job can be claimed between this check and the end of the transaction.
lock table :JOBS, :QUEUES in access exclusive mode;

do $gw$
begin
  if exists (select from :JOBS where locked_at > now() - interval '4 hours')
     or exists (select from :QUEUES where locked_at > now() - interval '4 hours') then
    raise exception using
      errcode = 'GWLKJ',
      message = 'There are locked jobs present, so this migration cannot run.',
      hint = 'Stop all workers gracefully; locks of dead workers are ignored after four hours.';
  end if;
end;
$gw$;
