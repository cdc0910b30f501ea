import { AuthError, endsSession, type ErrorCode } from "./error.js";
import { isBrowser, storageOf } from "./storage.js";
import type { Options, Pending, Result, Session, SignedIn, State, Status, User } from "./types.js";
import type * as wire from "./wire.js";

/** A session as it is kept: an adapter may keep the refresh token alone. */
interface Kept {
  refresh_token: string | null;
  access_token?: string | null;
  expires_at?: number | null;
  expires_in?: number;
  user?: User;
}

/** What one request carries. */
export interface Send {
  body?: object | undefined;
  bearer?: string | null | undefined;
  signal?: AbortSignal | undefined;
  /** Outlives the page. */
  keepalive?: boolean;
}

/** What the calls of a client are made of. */
export type Core = ReturnType<typeof createCore>;

const failed = (code: ErrorCode, message: string, ...rest: [number?, {}?, (string | null)?, (number | null)?]) => ({ data: null, error: new AuthError(code, message, ...rest) });
export const ok = <T>(data: T) => ({ data, error: null });
export { failed };

/** What an access token says; nothing where it cannot be read. It is not verified: it decides what is shown, no more. */
function claims(token: string | null | undefined): { session_id?: string; aal?: Session["aal"]; permissions?: string[] } {
  try {
    return JSON.parse(decodeURIComponent(escape(atob(token!.split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/")))));
  } catch {
    return {};
  }
}

const parse = (text: string | null): Kept | null => {
  try {
    const kept = JSON.parse(text!);
    return typeof kept.refresh_token === "string" ? kept : null;
  } catch {
    return null;
  }
};

/** What names a session among tabs. */
const nameOf = (kept: Kept | null) => kept && (claims(kept.access_token).session_id ?? kept.refresh_token);

/** A timer that keeps no process alive. */
function later(run: () => void, seconds: number) {
  const timer = setTimeout(run, seconds * 1000) as unknown as { unref?(): void };
  timer.unref?.();
  return timer as unknown as number;
}

/** The state of a client and everything that may change it: requests, storage, other tabs, time. */
export function createCore(url: string, apiKey: string | undefined, options: Options, storageKey: string) {
  const { cookies, initial, debug } = options;
  const [storage, shared] = storageOf(options.storage);
  const listeners = new Set<(state: State) => void>();
  const life = new AbortController();
  const channel = isBrowser() && (shared || cookies) && typeof BroadcastChannel !== "undefined" ? new BroadcastChannel(storageKey) : null;

  let state: State = initial ?? { status: "loading", user: null, session: null };
  let kept: Kept | null = cookies && initial?.user ? { refresh_token: null, user: initial.user, expires_at: initial.session?.expires_at ?? null } : null;
  let seen: string | null = null; // what storage had when it was read or written last
  let broken = false; // storage does not take what it is given: memory knows better
  let generation = 0; // rises with every sign-in and sign-out: what began before one does not undo it
  let ended: string | null = null; // the session that was signed out of here: a slower tab cannot bring it back
  let flight: Promise<Result<Session>> | null = null;
  let starting: Promise<void> | null = null;
  let skew = 0; // how far the server's clock is ahead, in seconds
  let mfaToken: string | null = null;
  let mfaTimer = 0;
  let outage: AuthError | null = null; // why there is no token, until `resume`
  let resume = 0;
  let failures = 0;
  let retryTimer = 0;
  let device: Promise<string | null> | null = null;

  const now = () => Date.now() / 1000 + skew;
  const missing = () => failed("missing_token", "Nobody is signed in.");

  /** Changes the state, and tells of it unless nothing changed. */
  function set(status: Status, user: User | null = null, session: Session | null = null, pending?: Pending) {
    const next: State = { status, user, session, ...(pending && { pending }) };
    if (JSON.stringify(next) === JSON.stringify(state)) return;
    state = next;
    for (const listener of listeners) tell(listener, next);
  }

  function tell(listener: (state: State) => void, snapshot: State) {
    queueMicrotask(() => {
      if (!listeners.has(listener)) return;
      try {
        const result: unknown = listener(snapshot);
        if (result instanceof Promise) result.catch(report);
      } catch (error) {
        report(error);
      }
    });
  }
  const report = (error: unknown) => (typeof reportError === "function" ? reportError(error) : console.error(error));

  function subscribe(listener: (state: State) => void) {
    const own = (snapshot: State) => listener(snapshot); // one function subscribed twice is two listeners
    listeners.add(own);
    tell(own, state);
    return () => void listeners.delete(own);
  }

  /** A random name of this device, kept over sign-outs: strangers' guesses at an account are told apart by it. */
  const deviceId = () =>
    (device ??= (async () => {
      const key = `${storageKey}.device`;
      try {
        let id = await storage.getItem(key);
        if (!id) await storage.setItem(key, (id = crypto.randomUUID().replace(/-/g, "")));
        return id;
      } catch {
        return null;
      }
    })());

  /** Every request goes through here. */
  async function send<T>(method: string, path: string, { body, bearer, signal, keepalive }: Send = {}): Promise<Result<T>> {
    const { captcha_token, ...json } = (body ?? {}) as Record<string, unknown>;
    const persistent = !cookies && (shared || options.storage);
    const headers: Record<string, string> = { accept: "application/json" };
    if (apiKey) headers.apikey = apiKey;
    if (bearer) headers.authorization = `Bearer ${bearer}`;
    if (cookies) headers["x-session-transport"] = "cookie";
    if (captcha_token) headers["x-captcha-token"] = String(captcha_token);
    if (body) headers["content-type"] = "application/json";
    if (persistent && body) {
      const id = await deviceId();
      if (id) headers["x-device-id"] = id;
    }
    const control = new AbortController();
    const stop = () => control.abort();
    const given = [signal, life.signal];
    const gone = () => given.some((s) => s?.aborted);
    for (const s of given) s?.addEventListener("abort", stop);
    const timer = later(stop, (options.timeout ?? 20_000) / 1000);
    const began = Date.now();
    let response: Response | undefined;
    let result: Result<T>;
    try {
      if (gone()) stop();
      response = await (options.fetch ?? fetch)(url + path, {
        method,
        headers,
        body: body ? JSON.stringify(json) : null,
        credentials: cookies ? "include" : "omit",
        redirect: "error", // what is sent is for this server alone
        cache: "no-store",
        signal: control.signal,
        ...(keepalive && { keepalive }),
      });
      result = read<T>(response, await response.text());
    } catch {
      result = gone() ? failed("aborted", "The call was given up.") : failed("network_error", "The server cannot be reached.");
    }
    clearTimeout(timer);
    for (const s of given) s?.removeEventListener("abort", stop);
    const { error } = result;
    debug?.({ method, path: path.split("?")[0]!, status: response?.status ?? 0, ms: Date.now() - began, ...(error && { code: error.code, ...(error.requestId && { requestId: error.requestId }) }) });
    return result;
  }

  /** What an answer says. */
  function read<T>(response: Response, text: string): Result<T> {
    const { status, headers } = response;
    const date = Date.parse(headers.get("date") ?? "") / 1000;
    let body;
    try {
      body = text ? JSON.parse(text) : null;
    } catch {
      body = undefined;
    }
    // Where a page of another origin cannot see the date, a session tells it.
    const at = date || body?.expires_at - body?.expires_in;
    if (Math.abs(at - now()) > 2) skew = at - Date.now() / 1000;
    if (response.ok && body !== undefined) return ok(body);
    const after = headers.get("retry-after");
    const wait = !!after && (+after || Date.parse(after) / 1000 - now());
    const known = typeof body?.code === "string";
    const result = failed(known ? body.code : "bad_response", known ? body.message : "The answer is not one of the server.", status, body?.details, body?.request_id, wait ? Math.max(wait, 1) : null);
    const wants = { mfa_required: "mfa", mfa_enrollment_required: "enroll" }[body?.code as string] as Status | undefined;
    if (wants && body.mfa_token) {
      mfaToken = body.mfa_token;
      clearTimeout(mfaTimer);
      mfaTimer = later(() => dropMfa(), body.expires_in);
      const pending = { expires_at: Math.floor(now() + body.expires_in), factors: body.factors };
      if (state.user) set(state.status, state.user, state.session, pending);
      else set(wants, null, null, pending);
    }
    return result;
  }

  /** The sign-in that waits for a factor is over. */
  function dropMfa() {
    mfaToken = null;
    clearTimeout(mfaTimer);
    if (state.pending) set(state.user ? state.status : "signed-out", state.user, state.session);
  }

  const sessionOf = (k: Kept): Session => {
    const { session_id, aal, permissions } = claims(k.access_token);
    return { access_token: k.access_token ?? null, expires_at: k.expires_at ?? null, id: session_id ?? null, aal: aal ?? null, permissions: permissions ?? [] };
  };

  /** Makes a session the current one. */
  function take(next: Kept) {
    kept = next;
    outage = null;
    failures = 0;
    clearTimeout(retryTimer);
    if (next.user) set("signed-in", next.user, sessionOf(next));
  }

  async function write(next: Kept) {
    seen = JSON.stringify(next);
    try {
      await storage.setItem(storageKey, seen);
      broken = false;
    } catch {
      broken = true;
    }
  }

  /** Reads storage again: another tab may have refreshed, signed in or signed out. */
  async function reread() {
    if (cookies || broken) return;
    let text;
    try {
      text = await storage.getItem(storageKey);
    } catch {
      return;
    }
    if (text === seen) return;
    const stored = parse(text);
    if (stored && nameOf(stored) === ended) return;
    seen = text;
    if (stored) {
      if (nameOf(stored) !== nameOf(kept)) generation++;
      take(stored);
    } else if (kept) leave();
  }

  /** Takes what a sign-in, or a refresh of the token `asked`, was answered. */
  async function accept(answer: wire.Session, asked?: string | null) {
    const { refresh_token, access_token, expires_at, expires_in, user } = answer;
    const next: Kept = { refresh_token, access_token, expires_at, expires_in, user };
    if (!asked) {
      generation++;
      mfaToken = null;
      clearTimeout(mfaTimer);
    }
    const began = generation;
    if (!cookies) {
      if (asked) {
        await reread(); // a slow answer does not undo what another tab has stored
        if (generation !== began || kept?.refresh_token !== asked) return;
      }
      await write(next);
      if (generation !== began && !kept) return void (await forget());
    }
    take(next);
    if (!asked || !cookies) channel?.postMessage({});
  }

  const forget = async () => {
    seen = null;
    try {
      await storage.removeItem(storageKey);
    } catch {
      broken = true;
    }
  };

  /** Nobody is signed in any more, here. */
  function leave() {
    generation++;
    ended = nameOf(kept);
    kept = outage = null;
    clearTimeout(retryTimer);
    dropMfa();
    set("signed-out");
  }

  /** Nobody is signed in any more, in every tab. */
  async function end() {
    const name = nameOf(kept);
    leave();
    if (!cookies) await forget();
    channel?.postMessage({ ended: name });
  }

  /** There is no token to be had now: says so, and tries again by itself. */
  function rest(error: AuthError) {
    outage = error;
    // A full jitter above half of a doubling time, so that tabs and devices do not come back together.
    const wait = Math.max(error.retryAfter ?? 0, Math.min(60, 2 ** failures++ / 2)) * (1 + Math.random() / 2);
    resume = Date.now() + wait * 1000;
    clearTimeout(retryTimer);
    retryTimer = later(again, wait);
    if (kept?.user && !usable()) set("offline", kept.user, sessionOf({ ...kept, access_token: null }));
  }
  function again() {
    resume = 0;
    if (state.status === "loading") starting = null;
    void (starting && !cookies ? refresh() : cookies && state.user ? refresh() : ready());
  }

  const usable = (margin = 0) => !!kept && (cookies ? !kept.expires_at || kept.expires_at - now() > margin : !!kept.access_token && kept.expires_at! - now() > margin);
  /** Tokens are renewed this long before they expire. */
  const fresh = () => usable(Math.min(30, (kept?.expires_in ?? 900) / 5));

  /** Renews the session; `refused` is a token that the server did not take. One request at a time, whoever asks. */
  function refresh(refused?: string | null): Promise<Result<Session>> {
    return (flight ??= renew(refused).finally(() => (flight = null)));
  }

  async function renew(refused?: string | null): Promise<Result<Session>> {
    await reread();
    for (let tries = 0; ; tries++) {
      if (!kept && !cookies) return missing();
      if (refused !== undefined ? !cookies && fresh() && kept!.access_token !== refused : fresh() && kept!.user) return ok(sessionOf(kept!));
      if (outage && Date.now() < resume) return { data: null, error: outage };
      const began = generation;
      const asked = kept?.refresh_token;
      const { data, error } = await send<wire.Session>("POST", "/refresh", { body: cookies ? {} : { refresh_token: asked } });
      if (generation !== began) {
        if (!kept) return missing(); // signed out meanwhile, which wins
        continue;
      }
      if (data) {
        await accept(data, asked ?? "cookie");
        return kept ? ok(sessionOf(kept)) : missing();
      }
      if (error.code === "aborted") return { data, error };
      await reread();
      if (kept && kept.refresh_token !== asked && tries < 9) continue; // another tab was faster
      if (endsSession(error) || (cookies && error.code === "missing_token")) {
        await end();
        return { data, error };
      }
      if (error.code === "network_error" && tries < 1) {
        await new Promise<void>((done) => setTimeout(done, 100 + Math.random() * 400));
        continue;
      }
      rest(error);
      return { data, error };
    }
  }

  /** Resolves when it is known who is signed in, or that this cannot be known now. */
  const ready = (): Promise<void> => (starting ??= start());

  async function start() {
    if (!cookies) {
      await reread();
      if (!kept) {
        if (state.status === "loading" || state.user) set("signed-out");
      } else if (!kept.user) await refresh();
    } else if (state.status === "loading") {
      const began = generation;
      const { data, error } = await send<User>("GET", "/me");
      if (generation !== began || state.status !== "loading") return;
      if (data) take({ refresh_token: null, user: data });
      else if (error.status === 401 && error.code !== "invalid_api_key") await refresh(null);
      else if (error.code === "aborted") starting = null;
      else if (error.status && error.status < 500 && error.status !== 429 && error.status !== 408 && error.code !== "bad_response") set("signed-out");
      else rest(error);
    }
  }

  /** A token that is good now. */
  async function token(signal?: AbortSignal): Promise<Result<string | null>> {
    if (life.signal.aborted) return failed("aborted", "The client was disposed of.");
    await until(ready(), signal);
    if (signal?.aborted) return failed("aborted", "The call was given up.");
    if (!fresh() && (kept || state.status === "loading")) {
      const { error } = await until(refresh(), signal);
      if (error && !usable()) return { data: null, error };
    }
    if (!kept) return outage ? { data: null, error: outage } : missing();
    return ok(kept.access_token ?? null);
  }

  /** A promise, or the end of the wait for it; what it stands for goes on for others. */
  function until<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    if (!signal) return promise;
    return new Promise<T>((done, fail) => {
      const stop = () => done(failed("aborted", "The call was given up.") as T);
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop);
      promise.then(done, fail).finally(() => signal.removeEventListener("abort", stop));
    });
  }

  /** A request of who is signed in; a token that is refused is renewed once. */
  async function authed<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<Result<T>> {
    const first = await token(signal);
    if (first.error) return first;
    const began = generation;
    let result = await send<T>(method, path, { body, bearer: first.data, signal });
    if (result.error && refused(result.error)) {
      const next = await until(refresh(first.data), signal);
      if (next.error) return next;
      result = await send<T>(method, path, { body, bearer: kept?.access_token, signal });
    }
    if (result.error && endsSession(result.error) && generation === began) await end();
    return result;
  }
  /** Whether a token was not taken, and another one may be. */
  const refused = ({ status, code }: { status: number; code: string }) => status === 401 && /^(token_stale|bad_token|missing_token|session_ended)$/.test(code);

  /** Completes a call that signs in. */
  async function finish<T extends object = {}>(answered: Result<wire.Session & T> | Promise<Result<wire.Session & T>>): Promise<Result<SignedIn & T>> {
    const { data, error } = await answered;
    if (error) {
      if (mfaToken && error.code === "invalid_token") dropMfa();
      return { data: null, error };
    }
    await accept(data);
    const { access_token: _, refresh_token: __, expires_in: ___, expires_at: ____, token_type: _____, ...rest } = data;
    return ok({ ...rest, session: state.session } as unknown as SignedIn & T);
  }

  /** What the server says of the user now. */
  async function setUser(user: User, began: number) {
    await reread();
    if (!kept || generation !== began) return;
    const next = { ...kept, user };
    if (!cookies) await write(next);
    if (generation !== began) return;
    const same = JSON.stringify(kept.user) === JSON.stringify(user);
    kept = next;
    if (!same) {
      set(state.status === "offline" ? "offline" : "signed-in", user, sessionOf(next));
      channel?.postMessage({});
    }
  }

  const online = () => {
    if (outage && !outage.retryAfter) again();
  };
  if (channel) {
    (channel as { unref?(): void }).unref?.();
    channel.onmessage = ({ data }) => {
      if (!data || data.flow) return;
      if (data.ended && data.ended === nameOf(kept)) leave();
      else if (!cookies) void reread();
      else if (data.ended !== undefined) leave();
      else
        void send<User>("GET", "/me").then(({ data: user }) => {
          if (user) take({ ...(kept?.user?.id === user.id ? kept : {}), refresh_token: null, user });
        });
    };
  }
  if (isBrowser()) globalThis.addEventListener?.("online", online);
  // On servers nothing is known, and nothing is looked for, until something is asked for.
  if (!initial && (isBrowser() || typeof options.storage === "object")) queueMicrotask(ready);

  return {
    url,
    storage,
    storageKey,
    cookies: !!cookies,
    life,
    get state() {
      return state;
    },
    get generation() {
      return generation;
    },
    get mfaToken() {
      return mfaToken;
    },
    get kept() {
      return kept;
    },
    set, subscribe, send, authed, token, refresh, ready, finish, accept, setUser, end, dropMfa, usable, refused, until,
    dispose() {
      life.abort();
      channel?.close();
      listeners.clear();
      clearTimeout(retryTimer);
      clearTimeout(mfaTimer);
      globalThis.removeEventListener?.("online", online);
    },
  };
}
