import { AuthError, endsSession, isRefused } from "./error.js";
import type { AuthClient, OAuthParams, Metadata, Options, Pending, Result, SignedIn, State, Status, Storage, User } from "./types.js";
import { attempt, inner, later, mapped, memory, nameOf, present, same, sessionOf, until, wired, type Kept } from "./values.js";
import type * as wire from "./wire.js";

/** The authority of a call: true for the signed-in user, a string for the bearer of that token, otherwise anonymous. */
type As = boolean | string | undefined;

/** The last code that was sent, stored to verify the code and to send it again. */
interface Sent {
  to: string | undefined;
  request_id: string;
  /** The id of the magic link's flow. */
  flow?: string | undefined;
  /** Whether the code confirms an email address instead of signing in. */
  confirm?: boolean;
  /** The parameters of the request, for `resend`. */
  data?: Fields;
}

type Fields = { email?: string; phone?: string; redirectTo?: string; captchaToken?: string };

/** The stored data of a redirect flow, from its start until the redirect returns. */
interface Flow {
  verifier: string;
  /** Whether the flow links an identity to the signed-in user. */
  link?: boolean;
}

/** What the other entries of this package use of a client: the calls below, which throw, and the token of a second factor that is pending. */
export interface Inner {
  [inner](signal?: AbortSignal): [
    call: <T>(path: string, body?: object, as?: As, method?: string) => Promise<T>,
    enter: <T extends object = {}>(path: string, body: object, as?: As) => Promise<SignedIn & T>,
    mfaToken?: string,
  ];
}

/** A call as implemented in this file: it has no options, and throws the error that callers get as a result. */
type Throwing<F> = F extends (...args: infer A) => Promise<Result<infer T>> ? (...args: A) => Promise<null extends T ? T | void : T> : never;
type Calls<M> = { [K in keyof M]: Throwing<M[K]> };
type Plain = Omit<AuthClient, "state" | "url" | "subscribe" | "dispose" | "onAuthStateChange" | "fetch" | "mfa" | "sessions">;

/**
 * Creates a client of the server at a URL. A URL without a path gets /auth/v1. In browsers, a second call with the same
 * URL and storage key returns the same client; on servers every call creates a new client, which stores nothing.
 *
 * @typeParam M the shape of the users' metadata: `createClient<{ user_metadata: { theme?: "dark" } }>(…)`
 * @param key the public API key, pk_…, if the server requires one
 * @throws TypeError if the URL is invalid, or the key is secret or not valid in a header
 */
export function createClient<M extends Metadata = {}>(url: string, key?: string | null, options: Options = {}): AuthClient<M> {
  // The client is one closure: its functions share variables instead of passing them around.

  const { origin, pathname, href } = new URL(url);
  if (!/^http/.test(origin) || href !== origin + pathname) throw new TypeError("not a project URL");
  if (!/^(?!sk_)[!-~]*$/.test(key as string)) throw new TypeError("not a public API key");
  const base = origin + (pathname[1] ? pathname : options.path ?? "/auth/v1").replace(/\/+$/, "");
  const { cookies, initial, storageKey = "authmount:" + base, storage: asked = "local" } = options;
  const browser = typeof document !== "undefined"; // only pages share clients and store tokens by default
  // The page's clients survive hot module reloads and are shared by two copies of this module. The key is a symbol,
  // because ids and names of elements also become global names (DOM clobbering).
  const page: { [name: symbol]: AuthClient<any>; [name: string]: any } = browser ? globalThis : {};
  const name = Symbol.for(storageKey + base);
  if (page[name]) return page[name];

  const found: Storage | undefined = attempt(() => page[asked + "Storage"]); // the getter throws if storage is blocked
  // `storage` falls back to memory if the browser blocks its storage; `shared` is true if other tabs can see it.
  const storage = typeof asked === "object" ? asked : found || memory();
  const shared = storage === asked || (found && asked === "local");
  const listeners = new Set<(state: State) => void>();
  const life = new AbortController(); // aborted by `dispose`
  let channel = (shared || cookies) && page.BroadcastChannel ? new BroadcastChannel(storageKey) : null;
  let skew = 0; // seconds by which the server's clock is ahead

  let state: State = initial ?? { status: "loading", user: null, session: null };
  let kept: Kept | null = cookies && initial?.user ? { user: initial.user, expires_at: initial.session?.expires_at as number } : null;
  let seen: string | null | undefined; // the stored text at the last read or write
  let broken: boolean | void = cookies; // do not read storage: a write failed, or sessions are in cookies
  // Concurrency: after an await, code compares `generation` (changed by sign-ins and sign-outs) and, for a call with a
  // token, `me()` (changed if the user is different). A sign-in compares its turn with `settled`, so that a later one
  // wins. Sessions from storage or other tabs are compared with `ended`, so that an ended session does not come back.
  let generation = 0; // increases with every sign-in and sign-out, so that older requests do not undo it
  let settled = 0; // the last turn that took effect: responses to earlier turns are discarded
  let ended: string | null | undefined; // the session that was signed out here: a slower tab cannot restore it
  let turn = 0; // increases at the start of each sign-in, and with each sign-out
  let starting: Promise<void> | undefined;
  let flight: Promise<void> | null | undefined;
  let mfaTimer: number | undefined;
  let mfaToken: string | undefined;
  let failures = 0;
  let outage: AuthError | null | undefined; // the reason why no token is available, until `resume`
  let retryTimer: number | undefined;
  let resume = 0;

  /** The server's clock, in Unix seconds. */
  const now = () => Date.now() / 1000 + skew;
  /** The signed-in user's id. */
  const me = () => kept?.user?.id;

  // ---- stored values; `name` is appended to the storage key

  /** Stores a value; null removes it. Returns true if storage failed, which is no error of the call. */
  async function put(name: string, value: unknown): Promise<true | void> {
    try {
      await (value ? storage.setItem(storageKey + name, JSON.stringify(value)) : storage.removeItem(storageKey + name));
    } catch {
      return true;
    }
  }
  async function recall<T>(name: string): Promise<T | null | undefined> {
    try {
      return JSON.parse((await storage.getItem(storageKey + name))!);
    } catch {
      // an unreadable value counts as absent
    }
  }

  /** Returns a random id of this device, kept after sign-out. The server counts failed attempts of other devices separately. */
  async function deviceId() {
    if (!cookies && (shared || options.storage)) {
      let id = await recall<string>(".device");
      if (!id) await put(".device", (id = crypto.randomUUID()));
      return id;
    }
    return undefined;
  }

  // ---- requests

  /** Sends a request, with the body's names converted by {@link wired}. Returns the response's data. Throws AuthError. */
  async function send<T>(path: string, body?: object, bearer?: string | null, signal?: AbortSignal, method = body ? "POST" : "GET"): Promise<T> {
    const { captcha_token, ...json } = wired(body);
    const control = new AbortController();
    const stop = () => control.abort();
    const gone = () => life.signal.aborted || signal?.aborted;
    const timer = setTimeout(stop, options.timeout ?? 20_000);
    const began = Date.now();
    let status = 0;
    let error: AuthError | undefined;
    const signals = [life.signal, signal];
    for (const s of signals) s?.addEventListener("abort", stop);
    try {
      if (gone()) throw stop; // the catch block makes it `aborted`
      // Proxies normalise paths, so an empty id, "." or ".." would reach a different endpoint.
      if (/\/\.{0,2}([/?]|$)/.test(path)) throw new AuthError("validation_failed");
      const response = await (options.fetch ?? fetch)(base + path, {
        method,
        headers: present({
          accept: "application/json",
          authorization: bearer ? "Bearer " + bearer : null,
          "x-device-id": body && (await deviceId().catch(() => {})),
          "x-session-transport": cookies ? "cookie" : null,
          "x-captcha-token": captcha_token,
          "content-type": body && "application/json",
          apikey: key || null,
        }),
        cache: "no-store",
        body: body && (JSON.stringify(json) as any),
        keepalive: /^\/logout/.test(path), // outlives the page
        signal: control.signal,
        credentials: cookies ? "include" : "omit",
        redirect: "error", // the request's data is for this server only
      });
      status = response.status;
      const text = (await response.text()) || "null"; // an empty body
      const said = attempt(() => JSON.parse(text));
      const seconds = (name: string) => Date.parse(response.headers.get(name)!) / 1000;
      // CORS may hide the Date header; a session's expires_at and expires_in also give the server's time.
      const ahead = (seconds("date") || said?.expires_at - said?.expires_in) - now();
      if (Math.abs(ahead) > 2) skew += ahead;
      if (response.ok && said !== undefined) return said;
      const after = response.headers.get("retry-after");
      throw new AuthError(said?.code ?? "bad_response", said?.message, status, said ?? {}, after && Math.max(1, +after || seconds("retry-after") - now() || 1) as any);
    } catch (e) {
      throw (error = e instanceof AuthError ? e : new AuthError(gone() ? "aborted" : "network_error"));
    } finally {
      clearTimeout(timer);
      for (const s of signals) s?.removeEventListener("abort", stop);
      options.debug?.({ method, path: path.split("?")[0]!, status, ms: Date.now() - began, ...(error && { code: error.code, requestId: error.requestId }) });
    }
  }

  // ---- the state

  function subscribe(listener: (state: State) => void) {
    const tell = (snapshot: State) => Promise.resolve(snapshot).then((s) => listeners.has(tell) && listener(s)).catch(globalThis.reportError ?? console.error);
    listeners.add(tell);
    tell(state);
    return () => listeners.delete(tell);
  }

  /** Sets the current session; null: signed out. */
  function take(next: Kept | null) {
    kept = next;
    failures = 0;
    outage = null;
    clearTimeout(retryTimer);
    if (next?.user) set("signed-in");
  }

  /** Stores a session; null removes it. */
  async function write(next: Kept | null) {
    if (cookies) return;
    seen = next && JSON.stringify(next);
    broken = await put("", next);
  }

  /** Reads storage again: another tab may have refreshed, signed in or signed out. */
  async function reread() {
    if (broken) return;
    const before = seen;
    try {
      const text = await storage.getItem(storageKey);
      if (text == seen || seen !== before) return; // == because absent is null or undefined; a write during the read makes the text outdated
      const stored: Kept | null = JSON.parse(text!);
      if (!stored || (typeof stored.refresh_token === "string" && nameOf(stored) !== ended)) {
        seen = text;
        if (stored) {
          if (nameOf(stored) !== nameOf(kept)) {
            // It is a different session: discard the results of older requests.
            generation++;
            settled = ++turn;
            mfaToken = undefined;
          }
          take(stored);
        } else if (kept) leave();
      }
    } catch {
      // an unreadable value counts as absent
    }
  }

  /** Stores the session of a response: to the sign-in of turn `since`, or to a refresh with the token `asked`. */
  async function accept(answer: wire.Session, since?: number, asked?: string | null) {
    const { refresh_token, access_token, expires_at, expires_in, token_type, ...said } = answer ?? {};
    const next: Kept = { refresh_token, access_token, expires_at, expires_in, user: said.user };
    if (cookies ? !said.user || refresh_token : typeof refresh_token !== "string") throw new AuthError("bad_response", cookies && !!said.user && "The server has cookies off.");
    let began = generation;
    if (since) {
      if (since < settled) {
        // A later sign-in or sign-out takes precedence: end this session.
        send("/logout", { refresh_token }, access_token).catch(() => {});
        if (cookies) await end();
        throw new AuthError("aborted");
      }
      settled = since;
      began = ++generation;
      mfaToken = undefined;
    } else if (!cookies) {
      await reread(); // a slow response does not overwrite a session from another tab
      if (generation !== began || kept?.refresh_token !== asked) return;
    }
    if (!cookies) await write(next); // with cookies there is nothing to store
    if (generation === began) {
      take(next);
      if (since || !cookies) channel?.postMessage({});
    } else {
      await write(kept); // in whichever order storage completed the writes
      if (since) throw new AuthError("aborted");
    }
    return { ...said, session: sessionOf(next) };
  }

  /** Updates the state from `kept`, and notifies listeners if it changed. */
  function set(status: Status, pending: Pending | null | undefined = kept && state.user && mfaToken ? state.pending : undefined) {
    if (!pending?.expires_at) {
      mfaToken = undefined; // no second factor is pending
      clearTimeout(mfaTimer);
    }
    const user = /-in|off/.test(status) ? kept && (kept.user ?? state.user) : null;
    const session = kept && sessionOf(status === "offline" ? { ...kept, access_token: null } : kept);
    const next = { status, user, session, ...(pending && { pending }) } as State;
    if (same(next, state)) return;
    state = next;
    for (const tell of listeners) tell(next);
  }

  /** Signs out in this tab. */
  function leave() {
    generation++;
    ended = nameOf(kept) ?? ended;
    take(null);
    set("signed-out");
  }

  /** Signs out in every tab, and removes the stored session. */
  async function end() {
    channel?.postMessage({ ended: nameOf(kept) });
    leave();
    await write(null);
  }

  /** Cancels the pending second factor, of a sign-in or of a session that requires it to continue. */
  const dropMfa = () => set(state.user ? state.status : kept ? "offline" : "signed-out", null);

  /** Starts waiting for a second factor if the error requires one. Returns the error's data for it. */
  function waits(error: AuthError) {
    const mfa = error.mfa?.();
    if (mfa) {
      mfaToken = mfa.mfa_token;
      clearTimeout(mfaTimer);
      mfaTimer = later(dropMfa, mfa.expires_in);
      set(usable() ? state.status : mfa.factors ? "mfa" : "enroll", { factors: mfa.factors, expires_at: Math.floor(now() + mfa.expires_in) });
    }
    return mfa;
  }

  // ---- tokens

  /** Retries the start or the refresh after an outage. */
  function again() {
    resume = 0;
    if (state.status === "loading") starting = start();
    else if (state.user) refresh().catch(() => {}); // the state already shows it
  }

  /** Whether the access token is valid for `margin` more seconds. A cookie's token of unknown expiry counts as valid. */
  const usable = (margin = 0) => kept && (cookies || kept.access_token) && ((cookies && !kept.expires_at) || kept.expires_at! - now() > margin);
  /** Whether the token needs no refresh yet: up to 30 seconds, or a fifth of its lifetime, before it expires. */
  const fresh = () => kept?.user && usable(Math.min(30, (kept.expires_in ?? 900) / 5));

  /** Returns a valid access token; null if it is in a cookie. */
  async function token(): Promise<string | null> {
    await ready();
    if (!fresh() && (outage || kept)) {
      await refresh().catch((error) => {
        if (!usable()) throw error;
      });
    }
    if (!kept) throw new AuthError("missing_token");
    return kept.access_token ?? null;
  }

  /** Refreshes the session. `refused` is a token that the server rejected; null: the one in a cookie. Concurrent callers share one request. */
  const refresh = (refused?: string | null): Promise<void> => (flight ??= renew(refused).finally(() => (flight = null)));

  /** Resolves when the initial state is loaded, or cannot be loaded now. */
  const ready = (): Promise<void> => (starting ??= start());

  /** Loads the signed-in user from storage; with cookies and `ask`, from the server. */
  async function start(ask = state.status === "loading") {
    try {
      if (!cookies) {
        await reread();
        if (!kept) leave();
        else if (!kept.user) await refresh();
      } else if (ask) {
        const began = generation;
        const user = await send<User>("/me");
        if (generation === began) take({ ...(me() === user.id && kept), user });
      }
    } catch {
      await refresh(null).catch(() => {}); // the refresh detects an outage
    }
  }

  /** Calls `run` with an access token. If the server rejects it, refreshes and calls `run` once more. */
  async function authorized<T>(run: (bearer: string | null) => Promise<T>, signal?: AbortSignal): Promise<T> {
    let who = me();
    const bearer = await until(token(), signal);
    if ((who ??= me()) !== me()) throw new AuthError("aborted"); // the user changed while waiting
    try {
      return await run(bearer);
    } catch (error) {
      if (!isRefused(error as AuthError)) throw error;
      await until(refresh(bearer), signal);
      if ((who ??= me()) !== me()) throw error;
      return run(kept?.access_token ?? null);
    }
  }

  /** The work of {@link refresh}. */
  async function renew(refused?: string | null) {
    await reread();
    for (let tries = 0; ; tries++) {
      if (!kept && (tries || !cookies)) throw new AuthError("missing_token");
      if (fresh() && refused !== (kept!.access_token ?? null)) return;
      if (outage && Date.now() < resume) throw outage;
      const began = generation;
      const asked = kept?.refresh_token;
      try {
        const answer = await send<wire.Session>("/refresh", cookies ? {} : { refresh_token: asked });
        if (generation === began) await accept(answer, 0, asked);
        refused = undefined;
        if (kept?.refresh_token === answer.refresh_token) return; // one refresh is enough, even with a short lifetime
      } catch (error: any) {
        if (error.code === "aborted") throw error;
        await reread();
        if (generation !== began || kept?.refresh_token !== asked) continue; // another tab refreshed, or there was a sign-out
        if (error.code === "network_error" && !tries) {
          await new Promise<void>((done) => setTimeout(done, 100 + Math.random() * 400));
          continue;
        }
        if (endsSession(error) || (cookies && error.status === 422)) await end(); // 422: the request had no refresh token cookie
        else if (!waits(error)) {
          // No token is available now: report it, and retry automatically.
          outage = error;
          // Exponential backoff with jitter, so that tabs and devices do not retry at the same time.
          const wait = Math.min(86400, error.retryAfter ?? Math.min(60, 2 ** failures++ / 2)) * (1 + Math.random() / 2);
          resume = Date.now() + wait * 1000;
          clearTimeout(retryTimer);
          retryTimer = later(again, wait);
          if (kept?.user && !usable()) set("offline");
        }
        throw error;
      }
    }
  }

  // ---- other tabs, and the page

  if (channel)
    channel.onmessage = ({ data }) => {
      const name = data?.ended;
      if ((name || cookies) && name === nameOf(kept)) leave();
      else if (!cookies) void reread();
      else {
        generation++; // earlier requests may belong to a different user
        void start(true);
      }
    };
  // A message can arrive before this tab's storage is up to date; the storage event follows when it is.
  const woken = ({ key }: { key?: string | null }) => (key ? key === storageKey && reread() : outage && !outage.retryAfter && again());
  for (const event of ["online", "storage"]) page.addEventListener?.(event, woken as any, life);
  // On servers the client loads nothing before the first call.
  if (!initial && (browser || storage === asked)) queueMicrotask(ready);

  // ---- redirect flows

  /** Returns the URL to return to, by default this page. Throws if its origin is not allowed. */
  function redirectURL(redirectTo: string | undefined): URL | undefined {
    const here = globalThis.location as Location | undefined;
    if (!redirectTo) return here && new URL(here.origin + here.pathname);
    const url = attempt(() => new URL(redirectTo, here?.href));
    if (url && (url.origin === here?.origin || (options.redirectOrigins?.some((o) => o === url.origin || o === url.protocol) ?? !here))) return url;
    throw new AuthError("redirect_not_allowed", "redirectTo is not in redirectOrigins");
  }

  /** Starts a flow with a new code verifier (RFC 7636 section 4). Returns the request's fields and the flow's id, which the redirect URL returns. */
  async function beginFlow(redirectTo?: string, link?: boolean): Promise<[fields: Record<string, string | undefined>, id: string]> {
    const url = redirectURL(redirectTo);
    const verifier = crypto.randomUUID() + crypto.randomUUID();
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
    const code_challenge = btoa(String.fromCharCode(...new Uint8Array(digest))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
    const id = Date.now().toString(36) + "-" + verifier.slice(0, 8); // 212 of 244 random bits stay secret
    // Remove flows that were not completed within a day.
    for (const key of Object.keys(storage)) if (parseInt(key.split(storageKey + ".flow.")[1]!, 36) + 864e5 < Date.now()) storage.removeItem(key);
    await put(".flow." + id, { verifier, link });
    url?.searchParams.set("am_flow", id);
    return [{ code_challenge, code_challenge_method: "S256", redirect_to: url?.href }, id];
  }
  const redirect = (redirectTo: string | undefined) => redirectTo && redirectURL(redirectTo)!.href;

  function go(to: { url: string }) {
    if (/^https?:/i.test(to?.url)) globalThis.location?.assign(to.url);
    return to;
  }

  // ---- the calls

  const redirecting: Record<string, Promise<SignedIn | void>> = {}; // by URL

  /** Returns the last sent code, if it was sent to this email address or phone number, or to anybody. */
  async function sentTo(who: { email?: string | undefined; phone?: string | undefined }, anybody?: unknown): Promise<Partial<Sent>> {
    const sent = await recall<Sent>(".sent");
    return ((anybody || sent?.to === (who.email ?? who.phone)) && sent) || {};
  }

  /** Creates the calls, bound to the signal of one call. */
  function calls(signal?: AbortSignal): [Calls<Plain>, Calls<AuthClient["mfa"]>, Calls<AuthClient["sessions"]>, ReturnType<Inner[typeof inner]>] {
    /** Sends the request of a call, and updates the state after errors. Every call uses it. */
    async function call<T>(path: string, body?: object, as?: As, method?: string): Promise<T> {
      const since = turn;
      let began: number; // the generation at the time of the request
      const run = (bearer: string | null) => {
        began = generation;
        return send<T>(path, body, bearer, signal, method);
      };
      try {
        return await (as === true ? authorized(run) : run(as as string));
      } catch (error: any) {
        if (as === true && endsSession(error) && generation === began!) await end();
        if (since >= settled) waits(error);
        if (mfaToken && error.code === "invalid_token") dropMfa();
        throw error;
      }
    }
    /** Sends a POST and ignores the response's data. */
    const done = (path: string, body: object, as?: As) => call(path, body, as).then(() => {});
    const remove = (path: string) => call(path, undefined, true, "DELETE");

    /** Sends a POST that signs in. A response with a request_id means that a code has to be verified first. */
    async function enter<T extends object = {}>(path: string, body: object, as?: As): Promise<SignedIn & T> {
      await ready();
      const since = ++turn;
      const answer = await call<any>(path, body, as);
      return answer?.request_id ? { ...answer, session: null } : ((await accept(answer, since)) as SignedIn & T);
    }

    /** Reads the user, or changes it with a body, and updates the state. */
    async function whoever(body?: object): Promise<User> {
      await ready();
      const began = generation;
      const user = await call<User>("/me", body, true, body && "PATCH");
      await reread();
      if (kept && generation === began && !same(kept.user, user)) {
        const next = (kept = { ...kept, user });
        set(state.user ? state.status : "signed-in");
        await write(next);
        if (kept === next) channel?.postMessage({});
        else await write(kept); // a refresh or a sign-out happened meanwhile
      }
      return user;
    }

    async function sendCode({ redirectTo, captchaToken, ...fields }: Fields): Promise<wire.SentCode> {
      const { email, phone } = fields;
      const [more, flow] = phone ? [] : await beginFlow(redirectTo);
      const answer = await call<wire.SentCode>(phone ? "/otp/send" : "/magic-link/send", { ...fields, captchaToken, ...more });
      await put(".sent", { to: email ?? phone, ...answer, flow, data: { ...fields, redirectTo } }); // the captcha's token is valid only once
      return answer;
    }

    async function oauthURL({ provider, redirectTo, scopes, ...rest }: OAuthParams): Promise<{ url: string }> {
      const [fields] = await beginFlow(redirectTo);
      return call("/oauth/" + encodeURIComponent(provider) + "?" + new URLSearchParams(present({ ...wired(rest), ...fields, scopes: scopes?.join(" ") })));
    }

    async function complete(href: string): Promise<SignedIn | void> {
      if (!href) return;
      const url = new URL(href);
      const [id, code, error, error_code, description] = ["am_flow", "code", "error", "error_code", "error_description"].map((name) => {
        const value = url.searchParams.get(name);
        url.searchParams.delete(name);
        return value;
      });
      if (!id || !(code || error)) return;
      if (globalThis.location?.href === href) history.replaceState(history.state, "", url);
      const flow = await recall<Flow>(".flow." + id);
      await put(".flow." + id, null);
      // Anyone can write the error parameters of a URL, so they are only used if the flow started here.
      if (error) throw new AuthError(((flow && error_code) ?? "oauth_denied") as "oauth_denied", flow && description, 400);
      if (!flow) throw new AuthError("other_browser", "Asked for in another browser: type the code there.");
      return enter("/exchange", { code, code_verifier: flow.verifier }, flow.link);
    }

    return [
      {
        acceptInvitation: async (params) => (await ready(), enter("/invitations/accept", params, !!state.user)), // it may be the first call of a page
        async verifyOtp({ type, code, ...params }) {
          // A token does not say whose it is. The server ignores the request of another account.
          const { request_id, confirm, flow: id } = await sentTo(params, type === "email" && params.token);
          const proof = { request_id, ...params };
          if (params.phone) return enter("/otp/verify", { ...proof, otp: code });
          if (type ? type === "email" : request_id ? confirm : state.user && !params.token) {
            const answer = await call<Partial<wire.TakenOver>>("/verify-email", { ...proof, code }, !!state.user);
            if (state.status === "confirm") set("signed-out");
            if (state.user) await whoever();
            return { user: null, session: null, ...answer };
          }
          const flow = await recall<Flow>(".flow." + id);
          const result = await enter("/magic-link/verify", { ...proof, code, code_verifier: flow?.verifier });
          await put(".flow." + id, null);
          return result;
        },
        async signUp({ redirectTo, ...params }) {
          const answer = await enter<wire.SentCode>("/signup", { ...params, redirect_to: redirect(redirectTo) });
          if (answer.request_id) {
            const { email, phone } = params;
            const { confirm, request_id } = await sentTo(params); // of a form sent twice only one id is the account's
            await put(".sent", { to: email ?? phone, request_id: (answer.request_id + (confirm ? "," + request_id : "")).slice(0, 400), confirm: email });
            if (!state.user) set("confirm", { email, phone } as Pending);
          }
          return answer;
        },
        oauthURL,
        confirmPhone: ({ phone, code }) => enter("/otp/verify", { phone, otp: code }, true),
        signInWithIdToken: ({ provider, ...params }) => enter("/oauth/" + encodeURIComponent(provider) + "/id-token", params),
        async resend(params) {
          const { user } = state;
          const { data } = await sentTo(params);
          if (!user || data) return sendCode({ ...data, ...params } as Fields);
          await (params.email && params.email === user.email ? call("/verify-email", {}, true) : whoever(params));
          return {};
        },

        updateUser: whoever,
        getUser: (accessToken) => (typeof accessToken === "string" ? call<User>("/me", undefined, accessToken) : whoever()),
        async refresh() {
          await ready();
          await refresh(kept?.access_token ?? null);
          return state.session!;
        },
        async signOut({ scope = "local" } = {}) {
          await ready();
          const path = "/logout?scope=" + scope;
          if (scope === "others") return done(path, {}, true);
          const told = (kept || cookies) && done(path, usable() ? {} : { refresh_token: kept?.refresh_token }, (usable() && kept?.access_token) as string).catch((error) => {
            if (error.status !== 401) throw error; // the session has already ended
          });
          // Only the server can delete its cookies: until then, the user is signed in.
          if (cookies) await told;
          settled = ++turn;
          await Promise.all([end(), put(".sent", null), told]);
        },

        changePassword: (params) => done("/me/password", { current_password: params.current, new_password: params.next }, true),
        completeRedirect: (href = globalThis.location?.href!) => (redirecting[href] ??= complete(href).finally(() => delete redirecting[href])),
        exportData: () => call<wire.Export>("/me/export", undefined, true),
        async deleteAccount() {
          await ready();
          const began = generation;
          await remove("/me");
          if (generation === began) await end(); // unless another user signed in meanwhile
        },
        resetPassword: (params) => done("/reset-password", params),
        signInWithOAuth: async (params) => go(await oauthURL(params)),
        linkIdentity: async ({ provider, redirectTo, scopes, prompt }) => go(await call("/me/identities/" + encodeURIComponent(provider), { ...(await beginFlow(redirectTo, true))[0], scopes, prompt }, true)),
        async unlinkIdentity({ provider }) {
          await remove("/me/identities/" + encodeURIComponent(provider));
          await whoever();
        },
        resetPasswordForEmail: async (email, { redirectTo, ...params } = {}) => done("/forgot-password", { email, ...params, redirect_to: redirect(redirectTo) }),
        settings: () => call<wire.Settings>("/settings"),
        getToken: token,
        confirm: (params) => enter("/me/confirm", params, true),
        signInWithPassword: (params) => enter("/login", params),
        signInWithOtp: sendCode as any,
      },
      {
        verify: (params) => enter("/2fa/verify", { ...params, mfa_token: mfaToken }, !mfaToken),
        enroll: () => call<wire.TOTPSetup>("/2fa/setup-totp", {}, mfaToken ?? true),
        enable: (params) => enter<wire.RecoveryCodes>("/2fa/verify-and-enable", params, mfaToken ?? true),
        async disable(params = {}) {
          await call("/2fa/disable", params, true);
          await whoever();
        },
        recoveryCodes: () => call<wire.RecoveryCodes>("/2fa/recovery-codes", {}, true),
      },
      {
        list: async () => (await call<wire.Sessions>("/sessions", undefined, true))?.sessions,
        async end(id) {
          await remove("/sessions" + (id === undefined ? "" : "/" + encodeURIComponent(id as string)));
          if (id && id === state.session?.id) await end();
        },
      },
      [call, enter, mfaToken!],
    ];
  }

  /** Wraps a group of calls: they return an AuthError as result instead of throwing it, and stop waiting when aborted. */
  const returning = (group: 0 | 1 | 2): any =>
    mapped(calls()[group], ([name]) => [
      name,
      async (...args: any[]) => {
        const signal = args.at(-1)?.signal;
        try {
          return { data: (await until((calls(signal)[group] as any)[name](...args), signal)) ?? null, error: null };
        } catch (error) {
          if (error instanceof AuthError) return { data: null, error };
          throw error;
        }
      },
    ]);

  return (page[name] = {
    ...returning(0),
    mfa: returning(1),
    sessions: returning(2),
    [inner]: (signal?: AbortSignal) => calls(signal)[3],
    url: base,
    get state() {
      return state;
    },
    subscribe,
    onAuthStateChange(listener) {
      let last: State | undefined;
      return subscribe((next) => {
        const { user, session } = next;
        if (next.status === "loading") return;
        const before = last;
        last = next;
        if (!before) listener("INITIAL_SESSION", session);
        else if (user?.id !== before.user?.id) listener(user ? "SIGNED_IN" : "SIGNED_OUT", session);
        else if (user && next.status !== "offline") {
          if (!same(user, before.user)) listener("USER_UPDATED", session);
          if (!same(session, before.session)) listener("TOKEN_REFRESHED", session);
        }
      });
    },
    dispose() {
      if (!life.signal.aborted) delete page[name]; // after a second dispose it could be a newer client
      life.abort();
      channel?.close();
      channel = null;
      clearTimeout(retryTimer);
      clearTimeout(mfaTimer);
      listeners.clear();
    },

    async fetch(input, init) {
      const request = new Request((input as Request).url ? (input as Request) : new URL(input as string, globalThis.location?.href ?? base), { ...init, ...(cookies && { credentials: "include" }) });
      const { origin: to } = new URL(request.url);
      if (to !== origin && !options.fetchOrigins?.includes(to)) throw new TypeError(to + " is not in fetchOrigins");
      const go = async (bearer?: string | null) => {
        const one = request.clone();
        if (bearer) one.headers.set("authorization", "Bearer " + bearer);
        const response = await (options.fetch ?? fetch)(one);
        // Only the body of a 401 is read: other responses may be endless streams.
        if (response.status === 401 && state.user) throw { ...(await response.clone().json().catch(() => {})), response, status: 401 };
        return response;
      };
      return authorized(go, request.signal).catch((error) => {
        if (error.response || error.code === "missing_token") return error.response ?? go();
        throw error;
      });
    },
  });
}
