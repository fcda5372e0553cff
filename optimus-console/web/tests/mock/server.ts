// A server that answers as the API describes, for tests of the pages alone.

import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Role, Unit } from "../../src/api/types";
import { act, advance } from "./act";
import { hostile } from "./hostile";
import * as look from "./look";
import { type Store, store as newStore } from "./store";
import { task } from "./task";
import { things } from "./things";

export interface Options {
  dist: string;
  mount?: string;
  mode?: "fine" | "hostile" | "empty";
  role?: Role;
  identity?: string;
  token?: string;
  queues?: number;
  /** Fixes the time, for screenshots. */
  now?: number;
}

export const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'self'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/** A queue that the reader may not see. */
export const FORBIDDEN = "of-others";

const TYPES: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

export interface Mock {
  url: string;
  store: Store;
  /** Ends all streams, as a restart of the server does. */
  dropStreams: () => void;
  /** How many streams are open. */
  streams: () => number;
  refuseStreams: (refuse: boolean) => void;
  close: () => Promise<void>;
}

class Server {
  readonly store: Store;
  readonly streams = new Set<ServerResponse>();
  refusesStreams = false;
  mount = "/";

  constructor(readonly options: Options) {
    this.store = newStore(this.now(), options.mode === "empty" ? 0 : (options.queues ?? 15));
    if (options.mode === "empty") this.store.operations = [];
    this.mount = options.mount ?? "/";
  }

  now(): number {
    return this.options.now ?? Date.now();
  }

  send(answer: ServerResponse, value: unknown, status = 200): void {
    const shown = this.options.mode === "hostile" && status === 200 ? hostile(value) : value;
    answer.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
    answer.end(JSON.stringify(shown));
  }

  async handle(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    answer.setHeader("content-security-policy", CSP);
    answer.setHeader("x-content-type-options", "nosniff");
    const url = new URL(request.url ?? "/", "http://mock");
    if (!url.pathname.startsWith(this.mount))
      return this.send(answer, { error: "not_found", message: "Outside of the mount." }, 404);
    const rest = url.pathname.slice(this.mount.length);
    if (!rest.startsWith("api/v1/")) return this.file(rest || "index.html", answer);
    const segments = rest.slice("api/v1/".length).split("/").map(decodeURIComponent);
    const parts = segments.map((segment) => segment.replace(/^~/, ""));
    return request.method === "POST"
      ? this.post(parts, request, answer)
      : this.get(parts, url, request, answer);
  }

  async file(name: string, answer: ServerResponse): Promise<void> {
    try {
      const text = await readFile(join(this.options.dist, name), "utf8");
      answer.writeHead(200, { "content-type": TYPES[name.split(".").pop() ?? ""] ?? "text/plain" });
      answer.end(text.replace("__BASE__", this.mount));
    } catch {
      answer.writeHead(404).end();
    }
  }

  isIn(request: IncomingMessage): boolean {
    return this.options.token === undefined || (request.headers.cookie ?? "").includes("mock=in");
  }

  async post(parts: string[], request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString() || "{}") as Record<string, unknown>;
    if (parts[0] === "sign-in") {
      if (body["token"] !== this.options.token) {
        return this.send(
          answer,
          {
            error: "unauthorized",
            message: "This token is not known. Ask the person who started the console.",
          },
          401,
        );
      }
      answer.writeHead(204, { "set-cookie": "mock=in; HttpOnly; SameSite=Strict; Path=/" }).end();
      return;
    }
    if (parts[0] === "sign-out")
      return void answer.writeHead(204, { "set-cookie": "mock=; Max-Age=0; Path=/" }).end();
    if (!this.isIn(request))
      return this.send(answer, { error: "unauthorized", message: "Sign in." }, 401);
    const done = act(this.store, parts, body, this.now());
    if (done === undefined) return void answer.writeHead(204).end();
    if (typeof done === "string")
      return this.send(answer, { error: "refused", message: done }, 409);
    this.send(answer, done);
  }

  stream(answer: ServerResponse, queue: string | null | undefined): void {
    if (this.refusesStreams) return void answer.writeHead(503).end();
    answer.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    this.streams.add(answer);
    const write = (name: string, plain: object) => {
      const shown = this.options.mode === "hostile" ? hostile(plain) : plain;
      answer.write(`event: ${name}\ndata: ${JSON.stringify(shown)}\n\n`);
    };
    const tell = () => {
      write("overview", look.overview(this.store, this.now()));
      const row = this.store.queues.find((one) => one.queue === queue);
      if (row !== undefined) write("queue", row);
    };
    tell();
    const timer = setInterval(tell, 1000);
    answer.on("close", () => {
      clearInterval(timer);
      this.streams.delete(answer);
    });
  }

  get(parts: string[], url: URL, request: IncomingMessage, answer: ServerResponse): void {
    if (!this.isIn(request))
      return this.send(answer, { error: "unauthorized", message: "Sign in." }, 401);
    const queue = parts[0] === "queues" ? parts[1] : url.searchParams.get("queue");
    if (queue === FORBIDDEN) {
      const message = `queue ${FORBIDDEN} is not among your queues`;
      return this.send(answer, { error: "forbidden", message }, 403);
    }
    if (parts[0] === "events") return this.stream(answer, queue);
    const found = this.look(parts, url.searchParams);
    if (found === undefined)
      return this.send(
        answer,
        { error: "not_found", message: "There is no such thing. Check the address." },
        404,
      );
    this.send(answer, found);
  }

  look(parts: string[], query: URLSearchParams): object | undefined {
    const [first = "", second, third] = parts;
    const now = this.now();
    const last = Number(query.get("last") ?? 60);
    const unit = (query.get("unit") ?? "minute") as Unit;
    const known =
      this.options.mode === "hostile" ? (this.store.queues[0]?.queue ?? "") : (second ?? "");
    switch (first) {
      case "session":
        return {
          identity: this.options.identity ?? "ann",
          role: this.options.role ?? "admin",
          queues: ["*"],
          version: "0.1.0",
          auth: this.options.token === undefined ? "none" : "token",
          namespace: "shop",
          payloads: "redacted",
          now_ms: now,
        };
      case "overview":
        return look.overview(this.store, now);
      case "stats":
        return look.stats(unit, last, now);
      case "queues": {
        if (second === undefined) {
          const part = query.get("text") ?? "";
          const rows = this.store.queues.filter((row) => row.queue.includes(part)).slice(0, 100);
          return { rows, next: null, total: this.store.queues.length, scanned: null };
        }
        if (third === "tasks") return look.tasks(this.store, known, query, now);
        if (third === "stats") return look.stats(unit, last, now, known);
        if (third === "history") return look.history(known, query, now);
        return look.queue(this.store, known);
      }
      case "tasks":
        return task(known, third ?? "", now);
      case "failures":
        return look.failurePage(this.store, query, now);
      case "processes":
        return this.options.mode === "empty"
          ? { rows: [], next: null, total: 0 }
          : look.processes(now);
      case "search":
        return look.search(this.store, query.get("q") ?? "");
      case "redis":
        return look.redis();
      case "audit":
        return { rows: this.options.mode === "empty" ? [] : this.store.audit, next: null };
      case "operations": {
        if (second === undefined) return { rows: this.store.operations };
        const found = look.operation(this.store, second);
        return found && advance(this.store, found, now);
      }
      default:
        return this.options.mode === "empty" ? { rows: [], next: null } : things(first, now);
    }
  }
}

export async function mock(options: Options): Promise<Mock> {
  const server = new Server(options);
  const http = createServer((request, answer) => {
    server
      .handle(request, answer)
      .catch((error: unknown) => answer.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${server.mount}`,
    store: server.store,
    dropStreams: () => server.streams.forEach((stream) => stream.end()),
    streams: () => server.streams.size,
    refuseStreams: (refuse) => {
      server.refusesStreams = refuse;
    },
    close: () =>
      new Promise((resolve) => {
        http.closeAllConnections();
        http.close(() => resolve());
      }),
  };
}
