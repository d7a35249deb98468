sum(completed)::bigint,
sum(failed)::bigint,
sum(permanently_failed)::bigint,
sum(run_seconds),
array[
  sum(durations[1]), sum(durations[2]), sum(durations[3]), sum(durations[4]), sum(durations[5]), sum(durations[6]),
  sum(durations[7]), sum(durations[8]), sum(durations[9]), sum(durations[10]), sum(durations[11]),
  sum(durations[12]), sum(durations[13]), sum(durations[14]), sum(durations[15]), sum(durations[16]),
  sum(durations[17])
],
sum(waited)::bigint,
sum(wait_seconds)
