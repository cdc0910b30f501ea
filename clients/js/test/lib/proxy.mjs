/**
 * A bad network in front of a server, and a clock that can be set forward for everybody: answers
 * are late or lost on the way back, and say a time of day that is `shift` seconds ahead.
 */
import { createServer, request as httpRequest } from "node:http";
import { freePorts } from "./ports.mjs";

/**
 * @param {object} o
 * @param {() => string} o.target the server's origin, asked for at each request, as it may be restarted
 * @param {Record<string, [type: string, body: string]>} o.pages what is served besides, by path
 * @param {number} [o.latency] the longest delay of an answer in milliseconds
 * @param {number} [o.lost] the share of answers that are lost once the server has given them
 */
export async function startProxy({ target, pages, latency = 0, lost = 0 }) {
  const proxy = { shift: 0, latency, lost, counts: {}, dropped: 0, log: [] };
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms)); // the latency itself
  const server = createServer(async (request, response) => {
    const path = request.url.split("?")[0];
    const page = pages[path];
    if (page) return void response.writeHead(200, { "content-type": page[0] }).end(page[1]);
    const name = `${request.method} ${path.replace("/auth/v1", "")}`;
    proxy.counts[name] = (proxy.counts[name] ?? 0) + 1;
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const delay = Math.random() * proxy.latency;
    const there = Math.random() * delay;
    await wait(there);
    const upstream = httpRequest(target() + request.url, { method: request.method, headers: request.headers, agent: false }, async (answer) => {
      const parts = [];
      try {
        for await (const part of answer) parts.push(part);
      } catch {
        return request.socket.destroy();
      }
      await wait(delay - there);
      let body = Buffer.concat(parts);
      proxy.log.push([name, answer.statusCode, answer.statusCode < 400 ? "" : body.toString()]);
      if (Math.random() < proxy.lost) {
        proxy.dropped++;
        return request.socket.destroy();
      }
      const headers = { ...answer.headers, date: new Date(Date.now() + proxy.shift * 1000).toUTCString() };
      if (/json/.test(headers["content-type"] ?? "") && body.length) {
        const json = JSON.parse(body);
        if (json.expires_at) json.expires_at += proxy.shift;
        body = Buffer.from(JSON.stringify(json));
        headers["content-length"] = body.length;
      }
      response.writeHead(answer.statusCode, headers).end(body);
    });
    upstream.on("error", () => request.socket.destroy());
    upstream.end(Buffer.concat(chunks));
  });
  const [port] = await freePorts(1);
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  proxy.url = `http://127.0.0.1:${port}`;
  proxy.stop = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return proxy;
}
