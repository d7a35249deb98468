// What chaos does in tasks/chaos.py, for npm's worker.
const fs = require("fs");
const path = require("path");

const file = fs.openSync(path.join(process.env.GW_CHAOS_LEDGER, String(process.pid)), "a");
let runs = 0;

function note(...words) {
  fs.writeSync(file, words.join(" ") + "\n");
}

module.exports = async (payload, helpers) => {
  const run = ++runs;
  const job = helpers.job;
  const wall = BigInt(Date.now()) * 1000000n;
  note("B", run, job.id, job.attempts, payload.n, process.hrtime.bigint(), wall);
  await new Promise((resolve) => setTimeout(resolve, payload.ms));
  if (job.attempts <= (payload.fails ?? 0)) {
    note("E", run, "failed", process.hrtime.bigint());
    throw new Error("as the plan has it");
  }
  note("E", run, "ok", process.hrtime.bigint());
};
module.exports.note = note;
