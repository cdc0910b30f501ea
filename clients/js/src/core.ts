import { AuthError, endsSession, isRefused } from "./error.js";
import { createSender } from "./send.js";
import { isBrowser, storageOf } from "./storage.js";
import type { CallOptions, Options, Session, State, Status, User } from "./types.js";
import type * as wire from "./wire.js";

/** A session as it is kept: an adapter may keep the refresh token alone. */
export interface Kept {
  refresh_token: string | null;
  access_token?: string | null;
  expires_at?: number | null;
  expires_in?: number;
  user?: User;
}

/** What the calls of a client are made of. Everything here throws what went wrong. */
export type Core = ReturnType<typeof createCore>;

/** What an access token says; nothing where it cannot be read. It is not verified: it decides what is shown, no more. */
function claims(token: string | null | undefined): { session_id?: string; aal?: Session["aal"]; permissions?: string[] } {
  try {
    return JSON.parse(atob(token!.split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/")));
  } catch {
    return {};
  }
}

function sessionOf({ access_token = null, expires_at = null }: Kept): Session {
  const { session_id = null, aal = null, permissions = [] } = claims(access_token);
  return { access_token, expires_at, id: session_id, aal, permissions };
}

/** What names a session among tabs. */
const nameOf = (kept: Kept | null) => kept && (claims(kept.access_token).session_id ?? kept.refresh_token);

/** A timer that keeps no process alive. */
function later(run: () => void, seconds: number): number {
  const timer: any = setTimeout(run, seconds * 1000);
  timer.unref?.();
  return timer;
}

/** Whether something that was stored, or answered, is a session. */
const isSession = (kept: Kept | null | undefined) => typeof kept?.refresh_token === "string";

const report = (error: unknown) => (typeof reportError === "function" ? reportError(error) : console.error(error));
const missing = () => new AuthError("missing_token");
export const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** A promise, or the end of the wait for it; what it stands for goes on for others. */
function until<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return Promise.race([
    promise,
    new Promise<never>((_, fail) => {
      const stop = () => fail(new AuthError("aborted"));
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop, { once: true });
    }),
  ]);
}

/** The state of a client and everything that may change it: answers, storage, other tabs, time. */
export function createCore(url: string, apiKey: string | undefined, options: Options, storageKey: string) {
  const { cookies, initial } = options;
  const [storage, shared] = storageOf(options.storage);
  const listeners = new Set<(state: State) => void>();
  const channel = isBrowser() && (shared || cookies) && typeof BroadcastChannel !== "undefined" ? new BroadcastChannel(storageKey) : null;
  const sender = createSender(url, apiKey, options, !cookies && (shared || options.storage) ? [storage, `${storageKey}.device`] : null);
  const { send, now } = sender;

  let state: State = initial ?? { status: "loading", user: null, session: null };
  let kept: Kept | null = cookies && initial?.user ? { refresh_token: null, user: initial.user, expires_at: initial.session?.expires_at ?? null } : null;
  let seen: string | null = null; // what storage had when it was read or written last
  let broken = false; // storage does not take what it is given: memory knows better
  let generation = 0; // rises with every sign-in and sign-out: what began before one does not undo it
  let turn = 0; // rises with each sign-in that begins, and each sign-out
  let settled = 0; // the last of them that took effect: an answer to one before it comes to nothing
  let ended: string | null = null; // the session that was signed out of here: a slower tab cannot bring it back
  let flight: Promise<void> | null = null;
  let starting: Promise<void> | null = null;
  let mfaToken: string | null = null;
  let mfaTimer = 0;
  let outage: AuthError | null = null; // why there is no token, until `resume`
  let resume = 0;
  let failures = 0;
  let retryTimer = 0;

  /** Tells other tabs, unless this one is over. */
  const post = (message: object) => sender.live() && channel?.postMessage(message);

  /** Changes the state, and tells of it unless nothing changed. */
  function set(status: Status, user: User | null = null, session: Session | null = null, pending = user && state.user && mfaToken ? state.pending : undefined) {
    if (!pending?.expires_at) {
      mfaToken = null; // no factor is waited for any more
      clearTimeout(mfaTimer);
    }
    const next = { status, user, session, ...(pending && { pending }) } as State;
    if (same(next, state)) return;
    state = next;
    for (const listener of listeners) tell(listener);
  }

  function tell(listener: (state: State) => void) {
    const snapshot = state;
    void Promise.resolve().then(() => listeners.has(listener) && listener(snapshot)).catch(report);
  }

  function subscribe(listener: (state: State) => void) {
    const own = (snapshot: State) => listener(snapshot); // one function subscribed twice is two listeners
    listeners.add(own);
    tell(own);
    return () => void listeners.delete(own);
  }

  /** The sign-in that waits for a factor is over. */
  function dropMfa() {
    mfaToken = null;
    if (state.pending) set(state.user ? state.status : "signed-out", state.user, state.session);
  }

  /** Makes a session the current one. */
  function take(next: Kept) {
    kept = next;
    outage = null;
    failures = 0;
    clearTimeout(retryTimer);
    if (next.user) set("signed-in", next.user, sessionOf(next));
  }

  /** Somebody else is signed in, or nobody: what began before comes to nothing. */
  function changed() {
    generation++;
    settled = ++turn;
  }

  /** Stores a session; null takes it away. */
  async function write(next: Kept | null) {
    seen = next && JSON.stringify(next);
    try {
      await (seen ? storage.setItem(storageKey, seen) : storage.removeItem(storageKey));
      broken = false;
    } catch {
      broken = true;
    }
  }

  /** Reads storage again: another tab may have refreshed, signed in or signed out. */
  async function reread() {
    if (cookies || broken) return;
    try {
      const text = await storage.getItem(storageKey);
      if (text === seen) return;
      const stored: Kept | null = JSON.parse(text!);
      if (stored && (!isSession(stored) || nameOf(stored) === ended)) return;
      seen = text;
      if (!stored) return kept ? leave() : undefined;
      if (nameOf(stored) !== nameOf(kept)) changed();
      take(stored);
    } catch {
      // what cannot be read says nothing
    }
  }

  /** Takes what a sign-in, or a refresh of the token `asked`, was answered. */
  async function accept(answer: wire.Session, asked?: string, since = turn) {
    const { refresh_token, access_token, expires_at, expires_in, user } = answer ?? {};
    const next: Kept = { refresh_token, access_token, expires_at, expires_in, user };
    if (!(cookies ? user && !refresh_token : isSession(next))) throw new AuthError("bad_response", cookies && !!user && "The server has cookies off.");
    if (!asked) {
      if (since < settled) {
        // Somebody signed in or out since: that one holds, and this one is ended.
        send("POST", "/logout", { body: { refresh_token }, bearer: access_token }).catch(() => {});
        if (cookies) await end();
        throw new AuthError("aborted");
      }
      settled = since;
      generation++;
      mfaToken = null;
    }
    const began = generation;
    if (!cookies) {
      if (asked) {
        await reread(); // a slow answer does not undo what another tab has stored
        if (generation !== began || kept?.refresh_token !== asked) return;
      }
      await write(next);
      if (generation !== began) return write(kept); // whatever order storage took them in
    }
    take(next);
    if (!asked || !cookies) post({});
  }

  /** Nobody is signed in any more, here. */
  function leave() {
    generation++;
    ended = nameOf(kept);
    kept = outage = null;
    clearTimeout(retryTimer);
    set("signed-out");
  }

  /** Nobody is signed in any more, in every tab. */
  async function end(asked?: boolean) {
    if (asked) settled = ++turn;
    post({ ended: nameOf(kept) });
    leave();
    if (!cookies) await write(null);
  }

  /** There is no token to be had now: says so, and tries again by itself. */
  function rest(error: AuthError): never {
    outage = error;
    // Half of a doubling time and jitter above it, so that tabs and devices do not come back together.
    const wait = Math.min(86400, Math.max(error.retryAfter ?? 0, Math.min(60, 2 ** failures++ / 2))) * (1 + Math.random() / 2);
    resume = Date.now() + wait * 1000;
    clearTimeout(retryTimer);
    retryTimer = later(again, wait);
    if (kept?.user && !usable()) set("offline", kept.user, sessionOf({ ...kept, access_token: null }));
    throw error;
  }
  function again() {
    resume = 0;
    if (state.status === "loading") starting = null;
    (state.user ? refresh() : ready()).catch(() => {}); // the state has said so
  }

  /** Whether the access token is good for so many seconds. One in a cookie that nothing is known of is. */
  const usable = (margin = 0) => !!kept && (kept.expires_at || !cookies ? (!!cookies || !!kept.access_token) && kept.expires_at! - now() > margin : true);
  /** Tokens are renewed this long before they expire. */
  const fresh = () => !!kept?.user && usable(Math.min(30, (kept.expires_in ?? 900) / 5));

  /** Renews the session; `refused` is a token that the server did not take. One request at a time, whoever asks. */
  const refresh = (refused?: string | null): Promise<void> => (flight ??= renew(refused).finally(() => (flight = null)));

  async function renew(refused?: string | null) {
    await reread();
    for (let tries = 0; ; tries++) {
      if (!kept && (!cookies || tries)) throw missing();
      if (fresh() && (refused === undefined || (!cookies && kept!.access_token !== refused))) return;
      if (outage && Date.now() < resume) throw outage;
      const began = generation;
      const asked = kept?.refresh_token;
      try {
        const answer = await send<wire.Session>("POST", "/refresh", { body: cookies ? {} : { refresh_token: asked } });
        if (generation === began) await accept(answer, asked ?? "in a cookie");
        refused = undefined;
        if (kept?.refresh_token === answer.refresh_token) return; // however short it lives: one refresh is enough
      } catch (e) {
        const error = e as AuthError;
        if (error.code === "aborted") throw error;
        await reread();
        if (generation !== began || kept?.refresh_token !== asked) continue; // another tab was faster, or a sign-out
        if (endsSession(error) || (cookies && error.status === 422)) { // 422: there is no cookie with a token
          await end();
          throw error;
        }
        if (error.code !== "network_error" || tries) rest(error);
        await new Promise<void>((done) => setTimeout(done, 100 + Math.random() * 400));
      }
    }
  }

  /** Resolves when it is known who is signed in, or that this cannot be known now. */
  const ready = (): Promise<void> => (starting ??= start());

  async function start() {
    try {
      if (!cookies) {
        await reread();
        if (!kept) leave();
        else if (!kept.user) await refresh();
      } else if (state.status === "loading") {
        const began = generation;
        const user = await send<User>("GET", "/me");
        if (generation === began) take({ refresh_token: null, user });
      }
    } catch {
      if (cookies) await refresh(null).catch(() => {}); // whether that is an outage, the refresh finds out
    }
  }

  /** A token that is good now; null where it is in a cookie. */
  async function token(signal?: AbortSignal): Promise<string | null> {
    await until(ready(), signal);
    if (!fresh() && (kept || outage)) {
      try {
        await until(refresh(), signal);
      } catch (error) {
        if (!usable() || signal?.aborted) throw error;
      }
    }
    if (!kept) throw missing();
    return kept.access_token ?? null;
  }

  /**
   * Every call goes through here. As true: of who is signed in, and a token that is refused is renewed once. As a
   * string: with that token.
   */
  async function call<T>(method: string, path: string, body?: object, o?: CallOptions, as?: boolean | string | null): Promise<T> {
    const signal = o?.signal;
    const own = as === true;
    const since = turn;
    let who = kept?.user?.id;
    /** Whether it is still the same person who asks. */
    const mine = () => (who ??= kept?.user?.id) === kept?.user?.id;
    let bearer = own ? await token(signal) : as || null;
    if (own && !mine()) throw new AuthError("aborted");
    const began = generation;
    for (let again = own; ; again = false) {
      try {
        return await send<T>(method, path, { body, signal, bearer });
      } catch (e) {
        const error = e as AuthError;
        if (again && isRefused(error)) {
          await until(refresh(bearer), signal);
          if (!mine()) throw error;
          bearer = kept?.access_token ?? null;
          continue;
        }
        if (own && endsSession(error) && generation === began) await end();
        const { mfa } = error;
        if (mfa && since >= settled) {
          mfaToken = mfa.token;
          clearTimeout(mfaTimer);
          mfaTimer = later(dropMfa, mfa.expires_in);
          set(state.user ? state.status : error.code === "mfa_required" ? "mfa" : "enroll", state.user, state.session, { factors: mfa.factors, expires_at: Math.floor(now() + mfa.expires_in) });
        } else if (mfaToken && error.code === "invalid_token") dropMfa();
        throw error;
      }
    }
  }

  /** What the server says of the user now. */
  async function setUser(user: User, began: number) {
    await reread();
    if (!kept || generation !== began || same(kept.user, user)) return;
    const next = (kept = { ...kept, user });
    set(state.status === "offline" ? "offline" : "signed-in", user, sessionOf(next));
    if (!cookies) await write(next);
    if (kept !== next) return void (cookies || (await write(kept))); // a refresh or a sign-out came in between
    post({});
  }

  const online = () => {
    if (outage && !outage.retryAfter) again();
  };
  if (channel)
    channel.onmessage = ({ data }) => {
      if (data?.ended ? data.ended === nameOf(kept) : cookies && data?.ended === null) leave();
      else if (!cookies) void reread();
      else {
        const began = ++generation; // what was asked before may be of somebody else
        send<User>("GET", "/me").then((user) => generation === began && take({ ...(kept?.user?.id === user.id ? kept : {}), refresh_token: null, user }), () => {});
      }
    };
  // A message may come before what it tells of is in this tab's storage: that has a word of its own when it is.
  const written = ({ key }: { key: string | null }) => {
    if (key === storageKey) void reread();
  };
  if (isBrowser()) {
    globalThis.addEventListener?.("online", online);
    globalThis.addEventListener?.("storage", written);
  }
  // On servers nothing is known, and nothing is looked for, until something is asked for.
  if (!initial && (isBrowser() || typeof options.storage === "object")) queueMicrotask(ready);

  return {
    url, storage, storageKey, cookies, set, subscribe, call, token, refresh, ready, accept, setUser, end, usable, until,
    get state() {
      return state;
    },
    get generation() {
      return generation;
    },
    begin: () => ++turn,
    get mfaToken() {
      return mfaToken;
    },
    get kept() {
      return kept;
    },
    get session() {
      return kept && sessionOf(kept);
    },
    dispose() {
      sender.dispose();
      channel?.close();
      listeners.clear();
      clearTimeout(retryTimer);
      clearTimeout(mfaTimer);
      globalThis.removeEventListener?.("online", online);
      globalThis.removeEventListener?.("storage", written);
    },
  };
}
