// What tick does in tasks/chaos.py, for npm's worker.
const { note } = require("./chaos.js");

module.exports = async (payload, helpers) => {
  note("T", payload.name, payload._cron.ts, helpers.job.id);
};
