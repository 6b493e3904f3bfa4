module.exports = (output, context) => output.includes(String(context.vars.limit));
module.exports.long = (output) => output.length > 5;
