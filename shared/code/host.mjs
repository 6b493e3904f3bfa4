// Runs in a process of its own: loads one JavaScript file, calls its function and answers, as host.py does.
import fs from 'node:fs';
import readline from 'node:readline';
import { pathToFileURL } from 'node:url';

const REPLIES_FD = 3;
const LOAD = 0;

function answer(reply) {
  let line;
  try {
    line = JSON.stringify(reply);
  } catch (error) {
    line = JSON.stringify({ id: reply.id, error: `what it returned is no JSON: ${error.message}` });
  }
  let data = Buffer.from(line + '\n');
  while (data.length) data = data.subarray(fs.writeSync(REPLIES_FD, data));
}

function failure(error) {
  const status = error?.status ?? error?.statusCode ?? error?.response?.status;
  const headers = error?.headers ?? error?.response?.headers;
  const wait = Number(headers?.get?.('retry-after') ?? headers?.['retry-after'] ?? NaN);
  const code = error?.code ?? error?.cause?.code ?? '';
  return {
    error: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    line: path ? Number(String(error?.stack).split(path + ':')[1]?.match(/^\d+/)?.[0] ?? 0) : 0,
    status: Number.isInteger(status) ? status : 0,
    is_connection: /^(E[A-Z]+|UND_ERR_\w+)$/.test(code) && !code.startsWith('ERR_'),
    wait_s: Number.isFinite(wait) ? wait : null,
  };
}

async function load(start) {
  const module = await import(pathToFileURL(start.path).href);
  const whole = module.default?.default ?? module.default ?? module;
  const named = (name) => (name ? module[name] ?? whole[name] : whole);
  if (start.role === 'check') {
    return (called, ...given) => {
      const judge = named(called || start.function);
      if (typeof judge !== 'function') throw new Error(`no function ${called || 'as its default export'}`);
      return judge(...given);
    };
  }
  const found = named(start.function);
  const isClass = typeof found === 'function' && /^class\b/.test(Function.prototype.toString.call(found));
  const made = isClass ? new found(start.options) : found;
  if (start.role === 'model' && typeof made?.callApi === 'function') return made.callApi.bind(made);
  if (typeof made !== 'function') throw new Error(`no function ${start.function || 'as its default export'}`);
  return made;
}

async function one(call, target, role) {
  // A model is called (prompt, context, options): the order of promptfoo's providers in JavaScript.
  const [prompt, options, context] = call.arguments;
  const given = role === 'model' ? [prompt, context, options] : call.arguments;
  try {
    answer({ id: call.id, value: (await target(...given)) ?? null });
  } catch (error) {
    answer({ id: call.id, ...failure(error) });
  }
}

console.log = console.info = console.debug = console.error;
process.on('unhandledRejection', (error) => console.error(error));
let target = null;
let role = '';
let path = '';
for await (const line of readline.createInterface({ input: process.stdin })) {
  if (target) {
    void one(JSON.parse(line), target, role);
    continue;
  }
  try {
    const start = JSON.parse(line);
    ({ role, path } = start);
    target = await load(start);
  } catch (error) {
    answer({ id: LOAD, ...failure(error) });
    process.exit(1);
  }
  answer({ id: LOAD, value: null });
}
process.exit(0);
