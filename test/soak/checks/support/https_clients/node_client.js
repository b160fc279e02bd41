// Node's https: an agent with one connection for each client. See ../https_clients.rb.
"use strict";

const { once } = require("events");
const fs = require("fs");
const https = require("https");
const { createInterface } = require("readline");

const [url, authority, count] = process.argv.slice(2);
const ca = fs.readFileSync(authority);

const agents = Array.from({ length: Number(count) }, (_, index) => {
  const version = ["TLSv1.2", "TLSv1.3"][index % 2];
  return new https.Agent({ keepAlive: true, maxSockets: 1, ca, minVersion: version, maxVersion: version });
});

async function ask(agent) {
  try {
    const request = https.request(url, { agent, timeout: 60000 });
    request.end();
    const [response] = await once(request, "response");
    const reused = response.socket.isSessionReused();
    let body = "";
    for await (const piece of response) body += piece;
    return response.headers.connection === "close" ? ["connection: close", false] : [body, reused];
  } catch (error) {
    return [String(error), false];
  }
}

async function main() {
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === "renew") agents.forEach(agent => agent.destroy());
    const answers = await Promise.all(agents.map(ask));
    const faults = new Set(answers.map(([body]) => body).filter(body => body !== "hello"));
    console.log(JSON.stringify({
      answered: answers.filter(([body]) => body === "hello").length,
      resumed: answers.filter(([, reused]) => reused).length,
      faults: [...faults].slice(0, 5)
    }));
  }
}

main();
