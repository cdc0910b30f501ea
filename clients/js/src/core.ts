import { AuthError, endsSession, isRefused } from "./error.js";
import { attempt, createSender } from "./send.js";
import { isBrowser, storageOf } from "./storage.js";
import type { Options, Pending, Session, SignedIn, State, Status, User } from "./types.js";
import type * as wire from "./wire.js";

/** A session as it is kept: an adapter may keep the refresh token alone. */
export interface Kept {
  refresh_token?: string | null;
  access_token?: string | null;
  expires_at?: number | null;
  expires_in?: number;
  user?: User;
}

/** What the calls of a client are made of. Everything here throws what went wrong. */
export type Core = ReturnType<typeof createCore>;

/** In whose name a call is: true, who is signed in; a string, whoever that token is of. */
export type As = boolean | string | undefined;

/** A session as the application sees it. What its token says is not verified: it decides what is shown, no more. */
function sessionOf({ access_token = null, expires_at = null }: Kept): Session {
  const claims = attempt(() => JSON.parse(atob(access_token!.split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/"))));
  const { session_id: id = null, aal = null, permissions = [] } = claims ?? {};
  return { access_token, expires_at, id, aal, permissions };
}

/** What names a session among tabs; null where it is in cookies. */
const nameOf = (kept: Kept | null) => kept && (sessionOf(kept).id ?? kept.refresh_token ?? null);

/** A timer that keeps no process alive. */
function later(run: () => void, seconds: number): number {
  const timer: any = setTimeout(run, seconds * 1000);
  timer.unref?.();
  return timer;
}

export const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** A promise, or the end of the wait for it; what it stands for goes on for others. */
export function until<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return Promise.race([
    promise,
    new Promise<never>((_, fail) => {
      const stop = () => fail(new AuthError("aborted"));
      if (signal?.aborted) stop();
      signal?.addEventListener("abort", stop);
    }),
  ]);
}

/** The state of a client and everything that may change it: answers, storage, other tabs, time. */
export function createCore(url: string, apiKey: string | null | undefined, options: Options, storageKey: string) {
  const { cookies, initial } = options;
  const [storage, shared] = storageOf(options.storage);
  const listeners = new Set<(state: State) => void>();
  let channel = isBrowser() && (shared || cookies) && globalThis.BroadcastChannel ? new BroadcastChannel(storageKey) : null;
  const [send, now, life] = createSender(url, apiKey, options, async () => {
    if (cookies || !(shared || options.storage)) return;
    const key = `${storageKey}.device`; // a random name, kept over sign-outs
    let id = await storage.getItem(key);
    if (!id) await storage.setItem(key, (id = crypto.randomUUID()));
    return id;
  });

  let state: State = initial ?? { status: "loading", user: null, session: null };
  let kept: Kept | null = cookies && initial?.user ? { user: initial.user, expires_at: initial.session?.expires_at ?? null } : null;
  let seen: string | null = null; // what storage had when it was read or written last
  let broken = false; // storage does not take what it is given: memory knows better
  let generation = 0; // rises with every sign-in and sign-out: what began before one does not undo it
  let turn = 0; // rises with each sign-in that begins, and each sign-out
  let settled = 0; // the last of them that took effect: an answer to one before it comes to nothing
  let ended: string | null = null; // the session that was signed out of here: a slower tab cannot bring it back
  let flight: Promise<void> | null = null;
  let starting: Promise<void> | null = null;
  let mfaToken: string | undefined;
  let mfaTimer = 0;
  let outage: AuthError | null = null; // why there is no token, until `resume`
  let resume = 0;
  let failures = 0;
  let retryTimer = 0;

  /** Tells other tabs, unless this one is over. */
  const post = (message: object) => channel?.postMessage(message);
  /** The id of who is signed in. */
  const me = () => kept?.user?.id;

  /** Changes the state to what is kept, and tells of it unless nothing changed. */
  function set(status: Status, pending: Pending | undefined = kept && state.user && mfaToken ? state.pending : undefined) {
    if (!pending?.expires_at) {
      mfaToken = undefined; // no factor is waited for any more
      clearTimeout(mfaTimer);
    }
    const user = kept && (kept.user ?? state.user);
    const session = kept && sessionOf(status === "offline" ? { ...kept, access_token: null } : kept);
    const next = { status, user, session, ...(pending && { pending }) } as State;
    if (same(next, state)) return;
    state = next;
    for (const listener of listeners) tell(listener);
  }

  function tell(listener: (state: State) => void) {
    const snapshot = state;
    void Promise.resolve().then(() => listeners.has(listener) && listener(snapshot)).catch(globalThis.reportError ?? console.error);
  }

  function subscribe(listener: (state: State) => void) {
    const own = (snapshot: State) => listener(snapshot); // one function subscribed twice is two listeners
    listeners.add(own);
    tell(own);
    return () => void listeners.delete(own);
  }

  /** The sign-in that waits for a factor is over. */
  function dropMfa() {
    mfaToken = undefined;
    if (state.pending) set(state.user ? state.status : "signed-out");
  }

  /** Makes a session the current one. */
  function take(next: Kept) {
    kept = next;
    outage = null;
    failures = 0;
    clearTimeout(retryTimer);
    if (next.user) set("signed-in");
  }

  /** Stores a session; null takes it away. */
  async function write(next: Kept | null) {
    if (cookies) return;
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
      if (stored && (typeof stored.refresh_token !== "string" || nameOf(stored) === ended)) return;
      seen = text;
      if (!stored) return kept ? leave() : undefined;
      if (nameOf(stored) !== nameOf(kept)) {
        // Somebody else is signed in: what began before comes to nothing.
        generation++;
        settled = ++turn;
      }
      take(stored);
    } catch {
      // what cannot be read says nothing
    }
  }

  /** Takes what a sign-in, or a refresh of the token `asked`, was answered. */
  async function accept(answer: wire.Session, asked?: string, since = turn) {
    const { refresh_token, access_token, expires_at, expires_in, token_type, ...said } = answer ?? {};
    const { user } = said;
    const next: Kept = { refresh_token, access_token, expires_at, expires_in, user };
    if (cookies ? !user || refresh_token : typeof refresh_token !== "string") throw new AuthError("bad_response", cookies && !!user && "The server has cookies off.");
    if (!asked) {
      if (since < settled) {
        // Somebody signed in or out since: that one holds, and this one is ended.
        send("POST", "/logout", { refresh_token }, access_token).catch(() => {});
        if (cookies) await end();
        throw new AuthError("aborted");
      }
      settled = since;
      generation++;
      mfaToken = undefined;
    }
    const began = generation;
    if (!cookies) {
      if (asked) {
        await reread(); // a slow answer does not undo what another tab has stored
        if (generation !== began || kept?.refresh_token !== asked) return;
      }
      await write(next);
    }
    if (generation === began) {
      take(next);
      if (!asked || !cookies) post({});
    } else await write(kept); // whatever order storage took them in
    return said;
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
    await write(null);
  }

  /** There is no token to be had now: says so, and tries again by itself. */
  function rest(error: AuthError): never {
    outage = error;
    // Half of a doubling time and jitter above it, so that tabs and devices do not come back together.
    const wait = Math.min(86400, error.retryAfter ?? Math.min(60, 2 ** failures++ / 2)) * (1 + Math.random() / 2);
    resume = Date.now() + wait * 1000;
    clearTimeout(retryTimer);
    retryTimer = later(again, wait);
    if (kept?.user && !usable()) set("offline");
    throw error;
  }
  function again() {
    resume = 0;
    if (state.status === "loading") starting = null;
    (state.user ? refresh() : ready()).catch(() => {}); // the state has said so
  }

  /** Whether the access token is good for so many seconds. One in a cookie that nothing is known of is. */
  const usable = (margin = 0) => kept && ((cookies && !kept.expires_at) || ((cookies || kept.access_token) && kept.expires_at! - now() > margin));
  /** Tokens are renewed this long before they expire. */
  const fresh = () => kept?.user && usable(Math.min(30, (kept.expires_in ?? 900) / 5));

  /** Renews the session; `refused` is a token that the server did not take. One request at a time, whoever asks. */
  const refresh = (refused?: string | null): Promise<void> => (flight ??= renew(refused).finally(() => (flight = null)));

  async function renew(refused?: string | null) {
    await reread();
    for (let tries = 0; ; tries++) {
      if (!kept && (!cookies || tries)) throw new AuthError("missing_token");
      if (fresh() && (refused === undefined || (!cookies && kept!.access_token !== refused))) return;
      if (outage && Date.now() < resume) throw outage;
      const began = generation;
      const asked = kept?.refresh_token;
      try {
        const answer = await send<wire.Session>("POST", "/refresh", cookies ? {} : { refresh_token: asked });
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
      } else if (state.status === "loading") await ask();
    } catch {
      if (cookies) await refresh(null).catch(() => {}); // whether that is an outage, the refresh finds out
    }
  }

  /** Asks whose the session in the cookies is. */
  async function ask() {
    const began = generation;
    const user = await send<User>("GET", "/me");
    if (generation === began) take({ ...(me() === user.id && kept), user });
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
    if (!kept) throw new AuthError("missing_token");
    return kept.access_token ?? null;
  }

  /** Runs something with a token of who is signed in; where that is refused, once more with a new one. */
  async function authorized<T>(run: (bearer: string | null) => Promise<T>, signal?: AbortSignal): Promise<T> {
    let who = me();
    /** Whether it is still the same person who asks. */
    const mine = () => (who ??= me()) === me();
    const bearer = await token(signal);
    if (!mine()) throw new AuthError("aborted");
    try {
      return await run(bearer);
    } catch (error) {
      if (!isRefused(error as AuthError)) throw error;
      await until(refresh(bearer), signal);
      if (!mine()) throw error;
      return run(kept?.access_token ?? null);
    }
  }

  /** Every call goes through here. */
  async function call<T>(signal: AbortSignal | undefined, method: string, path: string, body?: object, as?: As): Promise<T> {
    const since = turn;
    let began = generation;
    const run = (bearer: string | null) => {
      began = generation;
      return send<T>(method, path, body, bearer, signal);
    };
    try {
      return await (as === true ? authorized(run, signal) : run(as || null));
    } catch (e) {
      const error = e as AuthError;
      const { code } = error;
      const mfa = error.mfa?.();
      if (as === true && endsSession(error) && generation === began) await end();
      if (mfa && since >= settled) {
        mfaToken = mfa.mfa_token;
        clearTimeout(mfaTimer);
        mfaTimer = later(dropMfa, mfa.expires_in);
        set(state.user ? state.status : code === "mfa_required" ? "mfa" : "enroll", { factors: mfa.factors, expires_at: Math.floor(now() + mfa.expires_in) });
      } else if (mfaToken && code === "invalid_token") dropMfa();
      throw error;
    }
  }

  /** A POST that signs in; not yet, where the answer names a request for a code. */
  async function enter<T extends object = {}>(signal: AbortSignal | undefined, path: string, body: object, as?: As): Promise<SignedIn & T> {
    await ready();
    const since = ++turn;
    const answer = await call<any>(signal, "POST", path, body, as);
    return answer?.request_id ? { ...answer, session: null } : { ...(await accept(answer, undefined, since)), session: kept && sessionOf(kept) } as SignedIn & T;
  }

  /** A request that answers the user, who is taken as the server has them now. */
  async function user(signal: AbortSignal | undefined, body?: object): Promise<User> {
    await ready();
    const began = generation;
    const user = await call<User>(signal, body ? "PATCH" : "GET", "/me", body, true);
    await reread();
    if (kept && generation === began && !same(kept.user, user)) {
      const next = (kept = { ...kept, user });
      set(state.status === "offline" ? "offline" : "signed-in");
      await write(next);
      if (kept === next) post({});
      else await write(kept); // a refresh or a sign-out came in between
    }
    return user;
  }

  if (channel)
    channel.onmessage = ({ data }) => {
      const name = data?.ended;
      if (name ? name === nameOf(kept) : cookies && name === null) leave();
      else if (!cookies) void reread();
      else {
        generation++; // what was asked before may be of somebody else
        ask().catch(() => {});
      }
    };
  // A message may come before what it tells of is in this tab's storage: that has a word of its own when it is.
  const woken = ({ key }: { key?: string | null }) => (key ? key === storageKey && reread() : outage && !outage.retryAfter && again());
  if (isBrowser()) for (const event of ["online", "storage"]) globalThis.addEventListener?.(event, woken as any, life);
  // On servers nothing is known, and nothing is looked for, until something is asked for.
  if (!initial && (isBrowser() || typeof options.storage === "object")) queueMicrotask(ready);

  function dispose() {
    life.abort();
    channel?.close();
    channel = null;
    listeners.clear();
    clearTimeout(retryTimer);
    clearTimeout(mfaTimer);
  }

  return [storage, set, subscribe, call, authorized, token, refresh, ready, enter, user, end, usable, dispose, () => state, () => kept, () => mfaToken] as const;
}
