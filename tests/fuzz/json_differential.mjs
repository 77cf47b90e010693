// SPDX-License-Identifier: Apache-2.0
// Reads documents with our reader (json-check) and with JSON.parse, and compares verdicts and values.
// Documents: the corpus, seeded random ones, and mutations of both. Allowed differences, each verified
// here: we refuse duplicate keys, lone surrogates, depth beyond 64 and numbers beyond a double.
//   node json_differential.mjs JSON-CHECK CASES [mutations [seed]]
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const [program, casesFile, mutations = '20000', seedText = '1'] = process.argv.slice(2);
const DEPTH_MAX = 64;

function readCases(path) {
  const cases = [];
  for (const line of readFileSync(path, 'latin1').split('\n')) {
    const m = /^([ynl]) (\S+) ?(.*)$/.exec(line);
    if (!m) continue;
    const text = m[3]
      .replace(/~\((\d+)\)(~[0-9a-f]{2}|.)/g, (_, n, unit) => unit.repeat(Number(n)))
      .replace(/~([0-9a-f]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
    cases.push(Buffer.from(text, 'latin1'));
  }
  return cases;
}

// xorshift32: the same documents for the same seed everywhere
let state = (Number(seedText) * 2654435761) >>> 0 || 1;
function random(n) {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % n;
}
const pick = (list) => list[random(list.length)];

const scraps = ['{', '}', '[', ']', ',', ':', '"', '\\', '\\u', '\\ud83d\\ude00', '\\ud800', '0', '-', '1.5', 'e', 'E+',
  '1e309', 'true', 'false', 'null', ' ', '\n', '\t', '"a":', '"a":1,', '[]', '{}', '\u00e4', '\u20ac', '\u{1f600}', '\u0000',
  '\u001f', '/', '123456789012345678901', '"__proto__":', '"12":'].map((s) => Buffer.from(s));

const blanks = ['', '', '', ' ', '\n', '\t ', '\r\n'];
const numbers = ['0', '-0', '1', '-1', '1.5', '-2.5e-3', '1E22', '1e23', '9007199254740993', '9223372036854775807', '-9223372036854775808',
  '18446744073709551616', '0.1', '5e-324', '1.7976931348623157e308', '123456789012345678901234567890', '1e-400', '1e309'];
const letters = ['a', 'b', ' ', '/', '\\/', '\\n', '\\"', '\\\\', '\\u0041', '\\u0000', '\\ud83d\\ude00', '\u00e4', '\u20ac', '\u{1f600}', '\\udc00', '12345678'];
const generateNumber = () => (random(2) ? pick(numbers) : `${random(2) ? '-' : ''}${random(1000000)}.${random(1000000)}e${random(2) ? '-' : '+'}${random(330)}`);
const generateString = () => `"${Array.from({ length: random(12) }, () => pick(letters.slice(0, random(40) ? -2 : undefined))).join('')}"`;
// A document that is mostly valid.
function generate(depth) {
  const items = (make) => Array.from({ length: random(5) }, make).join(pick(blanks) + ',' + pick(blanks));
  switch (random(depth > 0 ? 7 : 4)) {
    case 0: return pick(['true', 'false', 'null']);
    case 1: return generateNumber();
    case 2: case 3: return generateString();
    case 4: case 5: return `{${items(() => `${generateString()}${pick(blanks)}:${pick(blanks)}${generate(depth - 1)}`)}}`;
    default: return `[${pick(blanks)}${items(() => generate(depth - 1))}${pick(blanks)}]`;
  }
}

function mutate(document, all, times) {
  let b = document;
  for (let i = times; i > 0; i--) {
    const at = random(b.length + 1);
    const to = Math.min(b.length, at + random(8));
    switch (random(5)) {
      case 0: b = Buffer.concat([b.subarray(0, at), b.subarray(to)]); break;
      case 1: b = Buffer.concat([b.subarray(0, at), pick(scraps), b.subarray(at)]); break;
      case 2: b = Buffer.concat([b.subarray(0, at), b.subarray(at, to), b.subarray(at)]); break;
      case 3: {
        b = Buffer.from(b);
        if (at < b.length) b[at] = random(256);
        break;
      }
      default: {
        const other = pick(all);
        b = Buffer.concat([b.subarray(0, at), Buffer.from('['), other, Buffer.from(',1]'), b.subarray(at)]);
      }
    }
  }
  return b;
}

function makeDocuments() {
  const cases = readCases(casesFile);
  const small = cases.filter((c) => c.length < 400);
  const documents = [...cases];
  for (let i = 0; i < Number(mutations); i++) {
    if (i % 2 === 0) documents.push(mutate(Buffer.from(generate(1 + random(6))), small, random(3)));
    else documents.push(mutate(pick(small), small, 1 + random(4)));
  }
  return documents;
}

function runOurs(documents) {
  const parts = [];
  for (const d of documents) {
    const size = Buffer.alloc(4);
    size.writeUInt32BE(d.length);
    parts.push(size, d);
  }
  const run = spawnSync(program, { input: Buffer.concat(parts), maxBuffer: 1 << 30 });
  if (run.status !== 0) throw new Error(`json-check ended with ${run.status ?? run.signal}: ${run.stderr}`);
  const answers = [];
  for (let at = 0; at < run.stdout.length;) {
    const size = run.stdout.readUInt32BE(at);
    answers.push(run.stdout.subarray(at + 4, at + 4 + size));
    at += 4 + size;
  }
  return answers;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
function runTheirs(document) {
  try {
    const text = decoder.decode(document);
    return { text, value: JSON.parse(text) };
  } catch {
    return null;
  }
}

// What of a valid document lies beyond our limits.
function findLimits(text) {
  const found = { duplicate: false, surrogate: false, deep: false, large: false };
  const open = []; // sets of keys; null for an array
  const token = /"(?:[^"\\]|\\.)*"|[{}[\]]|-?\d[\d.eE+-]*/gsy;
  for (let at = 0; at < text.length;) {
    token.lastIndex = at;
    const m = token.exec(text);
    if (!m) { at++; continue; }
    at = token.lastIndex;
    const t = m[0];
    if (t[0] === '"') {
      const s = JSON.parse(t);
      if (!s.isWellFormed()) found.surrogate = true;
      const keys = open.at(-1);
      if (keys && /^\s*:/.test(text.slice(at, at + 100))) {
        if (keys.has(s)) found.duplicate = true;
        keys.add(s);
      }
    } else if (t === '{' || t === '[') {
      open.push(t === '{' ? new Set() : null);
      if (open.length > DEPTH_MAX) found.deep = true;
    } else if (t === '}' || t === ']') {
      open.pop();
    } else if (!Number.isFinite(Number(t))) {
      found.large = true;
    }
  }
  return found;
}

const allowed = [['duplicate key', 'duplicate'], ['lone surrogate', 'surrogate'], ['nested too deeply', 'deep'], ['number too large', 'large']];
function isAllowed(refusal, text) {
  const found = findLimits(text);
  return allowed.some(([words, limit]) => refusal.includes(words) && found[limit]);
}

function compare(document, ours) {
  const theirs = runTheirs(document);
  const refused = ours[0] === 0x21;
  if (refused) return theirs === null || isAllowed(ours.toString(), theirs.text) ? null : `refused: ${ours}`;
  if (theirs === null) return 'taken, but JSON.parse refuses it';
  const again = JSON.parse(decoder.decode(ours));
  return JSON.stringify(again) === JSON.stringify(theirs.value) ? null : `read as ${ours}`;
}

const documents = makeDocuments();
const answers = runOurs(documents);
if (answers.length !== documents.length) throw new Error(`${answers.length} answers to ${documents.length} documents`);
let wrong = 0, taken = 0;
documents.forEach((d, i) => {
  if (answers[i][0] !== 0x21) taken++;
  const difference = compare(d, answers[i]);
  if (difference === null) return;
  wrong++;
  if (wrong <= 20) console.log(JSON.stringify(d.toString('latin1').slice(0, 300)), difference.slice(0, 300));
});
console.log(`${documents.length} documents, ${taken} taken, ${wrong} differences`);
process.exit(wrong === 0 ? 0 : 1);
