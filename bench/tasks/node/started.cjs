// Report when a job starts, and its number if it has one, by a clock that all processes of one machine share.
const { openSync, writeSync } = require("node:fs");

const report = process.env.BENCH_STARTED ? openSync(process.env.BENCH_STARTED, "w") : null;
module.exports = (payload) => {
  const now = process.hrtime.bigint();
  if (report !== null) writeSync(report, payload.n === undefined ? `${now}\n` : `${now} ${payload.n}\n`);
};
