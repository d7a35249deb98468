// Tell when a job starts, by a clock that all processes of one machine share.
const { openSync, writeSync } = require("node:fs");

const report = process.env.BENCH_STARTED ? openSync(process.env.BENCH_STARTED, "w") : null;
module.exports = () => {
  const now = process.hrtime.bigint();
  if (report !== null) writeSync(report, `${now}\n`);
};
