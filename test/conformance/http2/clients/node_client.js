// Node's http2. Says what it has met as a line of JSON; see ../clients_test.rb.
"use strict";

const { createHash } = require("crypto");
const { once } = require("events");
const fs = require("fs");
const http2 = require("http2");

const [base, authority] = process.argv.slice(2);
const body = Buffer.from("0123456789abcdef".repeat(4 * 65536));
const session = http2.connect(base, base.startsWith("https:") ? { ca: fs.readFileSync(authority) } : {});
const sha256 = bytes => createHash("sha256").update(bytes).digest("hex");

// The status, the fields and the body; what came before them is noted.
async function ask(path, { method = "GET", body, continued, hints, ...fields } = {}) {
  const stream = session.request({ ":path": path, ":method": method, ...fields }, { endStream: !body });
  stream.on("headers", head => { if (head[":status"] === 103) hints?.push(head.link); });
  if (continued) {
    const response = once(stream, "response");
    await once(stream, "continue");
    continued.push(true);
    stream.end(body);
    return collect(stream, response);
  }
  const response = once(stream, "response");
  if (body) stream.end(body);
  return collect(stream, response);
}

async function collect(stream, response) {
  const [fields] = await response;
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return { status: fields[":status"], fields, body: Buffer.concat(pieces) };
}

async function head() {
  const { status, fields, body } = await ask("/", { method: "HEAD" });
  return [status, fields["content-type"], body.length];
}

async function moved() {
  const { status, fields } = await ask("/moved");
  return status === 302 ? (await ask(fields.location)).body.toString() : status;
}

async function parallel() {
  const numbers = Array.from({ length: 100 }, (_, number) => String(number));
  const responses = await Promise.all(numbers.map(number => ask("/slow?" + number)));
  return responses.filter((response, number) => response.body.toString() === numbers[number]).length;
}

async function main() {
  const continued = [], hints = [];
  const seen = {
    get: (await ask("/")).body.toString(),
    protocol: (await ask("/protocol")).body.toString(),
    head: await head(),
    posted: (await ask("/digest", { method: "POST", body })).body.toString(),
    expected: (await ask("/digest", { method: "POST", body, expect: "100-continue", continued })).body.toString(),
    missing: (await ask("/missing")).status,
    moved: await moved(),
    large: sha256((await ask("/large")).body),
    pieces: sha256((await ask("/pieces")).body),
    hinted: (await ask("/hinted", { hints })).body.toString(),
    events: (await ask("/events", { accept: "text/event-stream" })).body.toString().match(/^data:.*$/gm).map(line => line.slice(5).trim()),
    parallel: await parallel()
  };
  console.log(JSON.stringify({ ...seen, continued: continued.length === 1, hints }));
}

session.on("error", error => { console.error(error); process.exit(1); });
setTimeout(() => process.exit(1), 60000).unref();
main().then(() => process.exit(0), error => { console.error(error); process.exit(1); });
