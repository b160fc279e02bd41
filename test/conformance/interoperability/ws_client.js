// Node's ws. Says what it has met as a line of JSON; see clients_test.rb.
"use strict";

const { once } = require("events");
const WebSocket = require("ws");

const url = process.argv[2];
const text = "grüße ✓";
const binary = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
const large = "0123456789abcdef".repeat(16384);
const parts = ["one ", "two ", "three"];

async function echo(socket, ...messages) {
  const echoed = once(socket, "message");
  messages.forEach((message, index) => socket.send(message, { fin: index === messages.length - 1 }));
  const [data, isBinary] = await echoed;
  return isBinary ? data : data.toString();
}

async function main() {
  const seen = {};
  const socket = new WebSocket(url, ["other", "echo.v1"]);
  await once(socket, "open");
  seen.protocol = socket.protocol;
  seen.compression = socket.extensions.includes("permessage-deflate");
  seen.text = (await echo(socket, text)) === text;
  seen.binary = binary.equals(await echo(socket, binary));
  seen.large = (await echo(socket, large)) === large;
  seen.fragments = (await echo(socket, ...parts)) === parts.join("");
  const pong = once(socket, "pong");
  socket.ping("there?");
  seen.pong = (await pong)[0].toString() === "there?";
  socket.send("close 4001 goodbye");
  const [code, reason] = await once(socket, "close");
  seen.closed_by_server = [code, reason.toString()];

  const other = new WebSocket(url);
  await once(other, "open");
  other.close(4000, "enough");
  seen.closed_by_client = (await once(other, "close"))[0];
  console.log(JSON.stringify(seen));
}

setTimeout(() => process.exit(1), 30000).unref();
main();
