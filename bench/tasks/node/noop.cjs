// Do nothing but remember which jobs ran; the list is written when the process ends.
const { writeFileSync } = require("node:fs");
const { join } = require("node:path");

const ran = [];
module.exports = (payload) => {
  ran.push(payload.n);
};

process.on("exit", () => {
  writeFileSync(join(process.env.BENCH_RAN, `ran-${process.pid}`), Uint32Array.from(ran));
});
// The worker ends itself by sending itself the signal again; without this there would be no "exit" event.
let asked = 0;
process.on("SIGTERM", () => {
  if (++asked > 1) process.exit(143);
});
