-- graphile_worker_rs lists retired jobs in a table of its own, from its revision 22 on. Its recovery subtracts the attempt
-- of any other job, and a retired one would become available again.
if v_retired[1] is not null
   and to_regclass(format('%I._private_job_retirements', :'GRAPHILE_WORKER_SCHEMA')) is not null
then
  insert into :GRAPHILE_WORKER_SCHEMA._private_job_retirements (id)
  select retired.id from unnest(v_retired) as retired (id)
  on conflict do nothing;
end if;
