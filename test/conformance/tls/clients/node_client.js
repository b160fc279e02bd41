// Node's https and tls, and ws. Says what it has met as a line of JSON; see ../clients_test.rb.
"use strict";

const { createHash } = require("crypto");
const { once } = require("events");
const fs = require("fs");
const https = require("https");
const tls = require("tls");
const WebSocket = require("ws");

const [base, authority] = process.argv.slice(2);
const { hostname, port } = new URL(base);
const options = { ca: fs.readFileSync(authority), family: 4 };
const piece = "0123456789abcdef".repeat(65536);

async function ask(path, { body, ...more } = {}) {
  const request = https.request(base + path, { ...options, ...more, method: body ? "POST" : "GET" });
  request.end(body);
  const [response] = await once(request, "response");
  const pieces = [];
  for await (const chunk of response) pieces.push(chunk);
  return Buffer.concat(pieces);
}

// Tickets come after the handshake; Node tells of each.
async function resumed() {
  const socket = tls.connect({ ...options, host: hostname, port, servername: hostname });
  const [session] = await once(socket, "session");
  socket.destroy();
  const again = tls.connect({ ...options, host: hostname, port, servername: hostname, session });
  await once(again, "secureConnect");
  const reused = again.isSessionReused();
  again.destroy();
  return reused;
}

async function echo() {
  const socket = new WebSocket(base.replace("https:", "wss:") + "/echo", options);
  await once(socket, "open");
  socket.send(piece);
  const [data] = await once(socket, "message");
  socket.close();
  return data.toString() === piece;
}

async function events() {
  const stream = await ask("/events", { headers: { accept: "text/event-stream" } });
  return stream.toString().match(/^data:.*$/gm).map(line => line.slice(5).trim());
}

async function main() {
  console.log(JSON.stringify({
    get: (await ask("/")).toString(),
    version: (await ask("/version")).toString(),
    posted: (await ask("/digest", { body: piece })).toString(),
    downloaded: createHash("sha256").update(await ask("/large")).digest("hex"),
    events: await events(),
    resumed: await resumed(),
    echo: await echo()
  }));
}

setTimeout(() => process.exit(1), 60000).unref();
main().then(() => process.exit(0));
