-- How many attempts ended in each state.
select history.state, count(*)
  from :GRAPHILE_WORKER_SCHEMA._private_gw_history as history
 where history.expires_at > now()
   and :SELECTION
 group by history.state
