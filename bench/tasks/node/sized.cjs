// Do nothing with a payload of any size, and remember the job where the smallest ones are remembered.
module.exports = require("./noop.cjs");
