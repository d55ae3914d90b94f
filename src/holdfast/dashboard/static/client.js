// A client of Holdfast for any page, without dependencies; client.d.ts has its types.
// A page of your own passes a key, and its origin belongs in HOLDFAST_ORIGINS. Pages of the dashboard are known by their cookie.

const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 5_000;
const SILENCE_MS = 40_000; // the server says something every 15 seconds

const HOME = new URL(import.meta.url).origin; // where this file came from is where Holdfast is

/** The same functions with their reach filled in: `const { reconnectSession } = holdfast({ key })`. */
export function holdfast(reach) {
  return {
    getReconnectToken: (sessionId) => getReconnectToken(sessionId, reach),
    reconnectSession: (sessionId, token) => reconnectSession(sessionId, token, reach),
    followEvents: (options) => followEvents({ ...reach, ...options }),
  };
}

/** A fresh token with which this session can be taken up again. */
export async function getReconnectToken(sessionId, options = {}) {
  return ask(`/api/mcp/sessions/${encodeURIComponent(sessionId)}/token`, { method: "GET" }, options);
}

/** Take a session up again. The token is used up; the answer holds the next one. */
export async function reconnectSession(sessionId, token, options = {}) {
  const body = JSON.stringify({ token });
  const request = { method: "POST", body, headers: { "Content-Type": "application/json" } };
  return ask(`/api/mcp/sessions/${encodeURIComponent(sessionId)}/reconnect`, request, options);
}

/** Follow the event log. It is taken up again where it was, however often the daemon is restarted. */
export function followEvents({ base = HOME, key = null, after = null, onEvent, onReset = () => {}, onState = () => {} }) {
  let seen = after;
  let wait = FIRST_WAIT_MS;
  let stopped = false;
  let current = null;

  async function once() {
    current = new AbortController();
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => current.abort(), SILENCE_MS);
    };
    heard();
    try {
      const headers = { Accept: "text/event-stream", ...bearer(key) };
      if (seen !== null) headers["Last-Event-ID"] = String(seen);
      const answer = await fetch(`${base}/events`, { headers, signal: current.signal, cache: "no-store" });
      if (answer.status === 401 || answer.status === 403) {
        stopped = true;
        onState("refused");
        return;
      }
      if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
      wait = FIRST_WAIT_MS;
      onState("connected");
      for await (const message of messages(answer.body, heard)) {
        if (message.id) seen = Number(message.id);
        if (message.event === "reset") onReset();
        else if (message.event === "message") onEvent({ seq: seen, ...JSON.parse(message.data) });
      }
    } finally {
      clearTimeout(silence);
    }
  }

  async function forever() {
    while (!stopped) {
      try {
        await once();
      } catch {
        // The daemon is away; the state says so.
      }
      if (stopped) return;
      onState("lost");
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
  }

  forever();
  return {
    get seen() {
      return seen;
    },
    stop() {
      stopped = true;
      current?.abort();
    },
  };
}

async function ask(path, request, { base = HOME, key = null } = {}) {
  const headers = { Accept: "application/json", ...request.headers, ...bearer(key) };
  const answer = await fetch(base + path, { ...request, headers, cache: "no-store" });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const { detail = `HTTP ${answer.status}`, next_step = null } = told;
    throw Object.assign(new Error(detail), { status: answer.status, nextStep: next_step });
  }
  return told;
}

function bearer(key) {
  return key === null ? {} : { Authorization: `Bearer ${key}` };
}

async function* messages(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      text += value;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        yield message(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function message(block) {
  const found = { event: "none", data: "", id: "" };
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    const name = line.slice(0, at);
    if (name === "data" && found.event === "none") found.event = "message";
    if (name in found) found[name] = line.slice(at + 1).trimStart();
  }
  return found;
}
