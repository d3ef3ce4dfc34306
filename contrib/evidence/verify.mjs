#!/usr/bin/env node
// A second verifier of evidence files, written from docs/evidence-format.md. Node.js 20, no dependencies, constant memory.
//   node verify.mjs [--vkey KEY]... [--state FILE] FILE|-...        prints one line of JSON for each file
// Exit codes: 0 ok, 1 tampered, 2 truncated, gap or stale, 3 unknown key or bad signature, 64 usage; the first of several.
import { isUtf8 } from "node:buffer";
import { createHash, createPublicKey, verify as verifySignature } from "node:crypto";
import { closeSync, existsSync, openSync, readFileSync, readSync, renameSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";

const FORMAT = "gw-evidence/1", MAX_LINE = 1 << 20, MAX_DEPTH = 32, NAME = "[A-Za-z0-9._:/-]{1,128}", TEXT = /^[\x20!\x23-\x5b\x5d-\x7f]+$/;
const HASH = /^[0-9a-f]{64}$/, UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/, COST = /^(0|[1-9]\d{0,9})\.\d{9}$/;
const RECORD = /^\{"hash":"([0-9a-f]{64})","prev":"([0-9a-f]{64})","rec":(\{.*\}),"seq":([1-9]\d{0,15})\}$/s;
const EXIT = { ok: 0, tampered: 1, truncated: 2, gap: 2, stale: 2, unknown_key: 3, bad_signature: 3 };
const HEADER = "anchor,exported_at,format,from_seq,key,latest_seq,org,rotations,to_seq", STATE = "hash,key,latest_seq,org,seq,time";

// need ends the verification of a file with what is wrong with it.
const need = (ok, reason, kind = "tampered") => ok || (() => { throw Object.assign(new Error(reason), { kind }); })();
const sha256 = (...parts) => parts.reduce((h, p) => h.update(p), createHash("sha256")).digest("hex");
const isText = (v, shape) => typeof v === "string" && shape.test(v);
const isObject = (v) => v !== null && typeof v === "object" && !Array.isArray(v);
const hasNames = (v, names) => isObject(v) && Object.keys(v).sort().join() === names;

// canonical writes a value as RFC 8785 does; only integers are numbers here.
function canonical(v, depth = 1) {
  if (depth > MAX_DEPTH || (typeof v === "number" && !Number.isSafeInteger(v)) || (typeof v === "string" && !v.isWellFormed())) throw 0;
  if (Array.isArray(v)) return "[" + v.map((e) => canonical(e, depth + 1)).join(",") + "]";
  if (!isObject(v)) return JSON.stringify(v);
  return "{" + Object.keys(v).sort().map((k) => canonical(k) + ":" + canonical(v[k], depth + 1)).join(",") + "}";
}

// parse reads an object that is written in the one canonical way; null for anything else.
function parse(text) {
  try {
    const v = JSON.parse(text);
    if (isObject(v) && canonical(v) === text) return v;
  } catch {} // neither JSON nor canonical
  return null;
}

// lines yields each line of a file without its newline, reading in pieces.
function* lines(fd) {
  let piece = Buffer.alloc(1 << 16), rest = Buffer.alloc(0), at = 0;
  for (let n; (n = readSync(fd, piece, 0, piece.length, null)) > 0; at = 0) {
    rest = Buffer.concat([rest, piece.subarray(0, n)]);
    for (let end; (end = rest.indexOf(10, at)) >= 0; at = end + 1) {
      need(end - at <= MAX_LINE, "the line is too long");
      yield rest.subarray(at, end);
    }
    rest = rest.subarray(at);
    need(rest.length <= MAX_LINE, "the line is too long");
  }
  need(!rest.length, "the file ends inside this line", "truncated");
}

// parseKey reads name+hash+key: an Ed25519 key after a byte 1, in base64; null for anything else.
function parseKey(vkey) {
  const m = typeof vkey === "string" && vkey.match(new RegExp(`^(${NAME})\\+([0-9a-f]{8})\\+([A-Za-z0-9+/]{44})$`));
  const raw = m && Buffer.from(m[3], "base64");
  if (!m || raw[0] !== 1 || sha256(m[1] + "\n", raw).slice(0, 8) !== m[2]) return null;
  const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw.subarray(1)]);
  return { id: m[1] + "+" + m[2], key: createPublicKey({ key: der, format: "der", type: "spki" }) };
}

// parseNote takes a note apart: title, lines, an empty line and one signature.
function parseNote(msg, title) {
  const i = typeof msg === "string" ? msg.lastIndexOf("\n\n") : -1;
  const m = i >= 0 && msg.slice(i + 2).match(new RegExp(`^— (${NAME}) ([A-Za-z0-9+/]{91}=)\\n$`));
  const raw = m && Buffer.from(m[2], "base64");
  need(m && raw.toString("base64") === m[2], `the ${title} is not a signed note`);
  const [first, ...body] = msg.slice(0, i).split("\n");
  return { text: msg.slice(0, i + 1), body: first === `${FORMAT}/${title}` ? body : [], id: m[1] + "+" + raw.toString("hex", 0, 4), signature: raw.subarray(4) };
}
const checkSignature = (note, key) => need(note.id === key.id, `a note is signed with ${note.id}`, "unknown_key") &&
  need(verifySignature(null, Buffer.from(note.text), key.key, note.signature), `the signature of ${key.id} is wrong`, "bad_signature");

function readHeader(text, r) {
  const h = parse(text);
  need(hasNames(h, HEADER) && hasNames(h.anchor, "hash,note,seq"), "the line is not the header of an evidence file");
  need([h.anchor.seq, h.from_seq, h.latest_seq, h.to_seq].every(Number.isSafeInteger) && parseKey(h.key) && Array.isArray(h.rotations) &&
    (h.anchor.note === null || typeof h.anchor.note === "string"), "the header has a malformed value");
  need(h.format === FORMAT && isText(h.org, UUID) && isText(h.exported_at, TIME) && isText(h.anchor.hash, HASH), "the header has a malformed value");
  Object.assign(r, { org: h.org, from_seq: h.from_seq, to_seq: h.to_seq, latest_seq: h.latest_seq });
  need(h.from_seq >= 1 && h.to_seq >= h.from_seq - 1 && h.latest_seq >= h.to_seq && h.anchor.seq === h.from_seq - 1, "the numbers contradict each other");
  need(h.from_seq > 1 || (/^0+$/.test(h.anchor.hash) && h.anchor.note === null), "there is something before the first record");
  return h;
}

// followKeys lists the keys from the first that the file names to its signer.
function followKeys(h) {
  const keys = [];
  for (const msg of h.rotations) {
    const note = parseNote(msg, "rotate"), [from, to, at, ...more] = note.body;
    need(isText(at, TIME) && !more.length && parseKey(from) && (!keys.length || keys.at(-1) === from), "the rotations do not follow each other");
    checkSignature(note, parseKey(from));
    keys.push(...(keys.length ? [] : [from]), to);
  }
  need((keys.at(-1) ?? h.key) === h.key, "the rotations do not lead to the key of the header");
  if (!keys.length) keys.push(h.key);
  if (h.anchor.note === null) return keys;
  const note = parseNote(h.anchor.note, "anchor"), [org, seq, hash, at, ...more] = note.body;
  need(org === h.org && seq === String(h.anchor.seq) && hash === h.anchor.hash && isText(at, TIME) && !more.length, "the anchor is not the header's");
  checkSignature(note, keys.map(parseKey).find((k) => k.id === note.id) ?? parseKey(h.key));
  return keys;
}

// judge looks at what a record says and adds it to the report.
function judge(rec, h, r) {
  need(rec?.v === 1 && typeof rec.type === "string" && rec.type, "the record is not in canonical form, or of another version");
  const count = new Map([["usage", "usage"], ["usage.final", "finals"], ["audit", "audit"]]).get(rec.type);
  r[count ?? "other"]++;
  if (!count) return;
  need(rec.client_id === h.org && isText(rec.at, TIME), "the record is of another organization, or has no time");
  if (rec.type === "audit") {
    need(isText(rec.id, TEXT) && isText(rec.action, TEXT), "the record has no id or no action");
    if (rec.action !== "evidence.prune" || h.anchor.note === null || rec.change?.to !== h.anchor.seq) return;
    return void (r.pruned = need(rec.change.hash === h.anchor.hash, "the record says that the chain was pruned at another hash"));
  }
  const costs = rec.type === "usage" ? [rec.cost_usd] : [rec.cost_usd, rec.previous_cost_usd];
  need(isText(rec.type === "usage" ? rec.id : rec.ref, UUID) && costs.every((c) => isText(c, COST)), "the record has no id or no cost");
  r.nano += costs.map((usd) => BigInt(usd.replace(".", ""))).reduce((cost, previous) => cost - previous);
}

function run(fd, { vkeys, state }, r) {
  const source = lines(fd);
  const next = () => {
    const { value, done } = (r.line++, source.next());
    need(!done, "the file ends without its head line", "truncated") && need(isUtf8(value), "the line is not UTF-8");
    return value.toString();
  };
  const first = next(), h = readHeader(first, r), keys = followKeys(h);
  need(!vkeys.length || vkeys.some((k) => keys.includes(k)), "no trusted key signed the file", "unknown_key");
  need(!state || keys.includes(state.key), "the key of the saved state did not hand over to the signer", "unknown_key");
  r.trusted = vkeys.length > 0 || !!state;
  const s = state ?? { org: h.org, seq: h.to_seq, latest_seq: 0 };
  need(s.org === h.org, "the saved state is of another organization");
  need(h.anchor.seq <= s.seq, `records ${s.seq + 1} to ${h.anchor.seq} lie between the saved state and this file`, "gap");
  need(h.latest_seq >= s.latest_seq && h.to_seq >= s.seq, "the file or its chain ends before the saved state", "stale");
  let hash = h.anchor.hash;
  const compare = (seq) => need(!state || seq !== s.seq || hash === s.hash, "history was rewritten since the saved state");
  compare(h.anchor.seq);
  for (let seq = h.from_seq; seq <= h.to_seq; seq++, r.records++) {
    const text = next(), m = text.match(RECORD);
    need(!text.startsWith('{"head":'), `records ${seq} to ${h.to_seq} are missing`, "gap");
    need(m && BigInt(m[4]) >= seq, `the line is not that of record ${seq}`);
    need(BigInt(m[4]) <= seq, `records from ${seq} on are missing`, "gap");
    need(m[2] === hash, `record ${seq} does not follow the one before`);
    hash = sha256(`${FORMAT}\n${h.org}\n${seq}\n`, Buffer.from(hash, "hex"), m[3]);
    need(m[1] === hash, `record ${seq} was altered`);
    judge(parse(m[3]), h, r);
    compare(seq);
  }
  const last = parse(next()), note = parseNote(hasNames(last, "head") && last.head, "head");
  checkSignature(note, parseKey(h.key));
  const want = [h.org, h.to_seq, hash, h.exported_at, h.from_seq, h.latest_seq, sha256(first)].join("\n");
  need(note.body.join("\n") === want, "the signed head is of another file");
  need(h.anchor.note === null || h.to_seq !== h.latest_seq || r.pruned, "records are gone, and none says that they were pruned");
  need(++r.line && source.next().done, "something follows the head line");
  return { hash, key: h.key, time: h.exported_at, line: 0 };
}

// judgeFile is the report on one file.
function judgeFile(path, options) {
  const fd = path === "-" ? 0 : openSync(path), r = { class: "ok", line: 0, reason: "", org: "", from_seq: 0, to_seq: 0, latest_seq: 0, hash: "",
    key: "", trusted: false, records: 0, usage: 0, finals: 0, audit: 0, other: 0, nano: 0n, pruned: false };
  try {
    Object.assign(r, run(fd, options, r));
  } catch (e) {
    if (!e.kind) throw e;
    Object.assign(r, { class: e.kind, reason: e.message });
  } finally {
    closeSync(fd);
  }
  const digits = String(r.nano).replace("-", "").padStart(10, "0");
  return { ...r, nano: undefined, cost_usd: (r.nano < 0n ? "-" : "") + digits.slice(0, -9) + "." + digits.slice(-9) };
}

// readState is where an earlier run left the chain; null for none.
function readState(path) {
  const s = path && existsSync(path) ? parse(readFileSync(path, "utf8").replace(/\n$/, "")) : null;
  if (path && existsSync(path) && !(hasNames(s, STATE) && isText(s.hash, HASH) && parseKey(s.key))) throw new Error(`${path} is not a state file`);
  return s;
}

try {
  const options = { vkey: { type: "string", multiple: true, default: [] }, state: { type: "string" } };
  const { values, positionals: files } = parseArgs({ allowPositionals: true, options });
  if (!files.length || !values.vkey.every(parseKey)) throw new Error("usage: verify.mjs [--vkey KEY]... [--state FILE] FILE|-...");
  for (const file of files) {
    const r = judgeFile(file, { vkeys: values.vkey, state: readState(values.state) });
    const left = { hash: r.hash, key: r.key, latest_seq: r.latest_seq, org: r.org, seq: r.to_seq, time: r.time };
    if (r.class === "ok" && values.state) writeFileSync(values.state + ".new", canonical(left) + "\n"), renameSync(values.state + ".new", values.state);
    console.log(JSON.stringify(r));
    if (r.class === "ok" && !r.trusted) console.error("no --vkey: this proves integrity and not origin");
    process.exitCode ||= EXIT[r.class];
  }
} catch (e) {
  console.error(e.message);
  process.exitCode = 64;
}
