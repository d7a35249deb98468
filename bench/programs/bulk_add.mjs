// Add jobs in bulk through addJobs and print how many seconds that took: bulk_add.mjs ENTRY URL COUNT QUEUES [CHUNK]
const [entry, connectionString, count, queues, chunk = "10000"] = process.argv.slice(2);
const { default: fallback, ...named } = await import(`file://${entry}`);
const { makeWorkerUtils } = { ...fallback, ...named };

const utils = await makeWorkerUtils({ connectionString });
await utils.migrate();
const names = Number(queues) ? Array.from({ length: Number(queues) }, (_, n) => `queue-${n}`) : [undefined];
// Connect first; what is timed is from plain values to committed jobs.
const began = process.hrtime.bigint();
for (let first = 0; first < Number(count); first += Number(chunk)) {
  const specs = [];
  for (let n = first; n < Math.min(first + Number(chunk), Number(count)); n++) {
    specs.push({ identifier: "noop", payload: { n }, queueName: names[n % names.length] });
  }
  await utils.addJobs(specs);
}
console.log(Number(process.hrtime.bigint() - began) / 1e9);
await utils.release();
