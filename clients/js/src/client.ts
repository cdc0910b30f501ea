import { AuthError, endsSession, isRefused } from "./error.js";
import type { AuthClient, OAuthParams, Options, Pending, Result, SignedIn, State, Status, Storage, User } from "./types.js";
import { attempt, later, mapped, memory, nameOf, present, same, sessionOf, until, wired, type Kept } from "./values.js";
import type * as wire from "./wire.js";

/** In whose name a call is: true, who is signed in; a string, whoever that token is of. */
type As = boolean | string | undefined;

/** What was sent to an address or number last, to take its code and to send it again. */
interface Sent {
  to: string | undefined;
  request_id: string;
  /** Of a magic link's flow. */
  flow?: string | undefined;
  /** A confirmation of an address, not a sign-in. */
  confirm?: boolean;
  /** What it was asked for with. */
  data?: Fields;
}

type Fields = { email?: string; phone?: string; redirectTo?: string; captchaToken?: string };

/** What is remembered of a flow between its begin and its end in a redirect. */
interface Flow {
  verifier: string;
  /** An identity is linked to who is signed in. */
  link?: boolean;
}

/** A call as it is written here: without its options, and it throws what callers get as an error. */
type Throwing<F> = F extends (...args: infer A) => Promise<Result<infer T>> ? (...args: A) => Promise<null extends T ? T | void : T> : never;
type Calls<M> = { [K in keyof M]: Throwing<M[K]> };
type Plain = Omit<AuthClient, "state" | "url" | "subscribe" | "dispose" | "onAuthStateChange" | "fetch" | "mfa" | "sessions">;

/**
 * Makes a client of the server at a URL, to whose bare origin /auth/v1 is added. In browsers a second call with the
 * same URL and storage key returns the same client; on servers every call makes its own, and keeps nothing.
 *
 * @param key the public API key, pk_…, where the server has one
 * @throws TypeError for a URL that is none, and for a key that is secret or cannot be sent in a header
 */
export function createClient(url: string, key?: string | null, options: Options = {}): AuthClient {
  // All that a client is lies in this one function: its parts share their variables, and none is handed around.

  const { origin, pathname, href } = new URL(url);
  if (!/^http/.test(origin) || href !== origin + pathname) throw new TypeError("not a project URL");
  if (!/^(?!sk_)[!-~]*$/.test(key as string)) throw new TypeError("not a public API key");
  const base = origin + (pathname[1] ? pathname : options.path ?? "/auth/v1").replace(/\/+$/, "");
  const { cookies, initial, storageKey = "authmount:" + base, storage: asked = "local" } = options;
  const browser = typeof document !== "undefined"; // only in a page are clients shared, and tokens kept by default
  // Clients of this page, by name: over hot module reloads, and over two copies of this module.
  const clients: Record<string, AuthClient> = browser ? (globalThis as any) : {};
  const name = storageKey + base;
  if (clients[name]) return clients[name];

  const found: Storage | undefined = attempt(() => browser && (globalThis as any)[asked + "Storage"]); // the getter throws where storage is blocked
  // The storage that was asked for, and whether other tabs see it. Where the browser refuses its own, memory.
  const storage = typeof asked === "object" ? asked : found || memory();
  const shared = storage === asked || (found && asked === "local");
  const listeners = new Set<(state: State) => void>();
  const life = new AbortController(); // of the client: ends with `dispose`
  let channel = browser && (shared || cookies) && globalThis.BroadcastChannel ? new BroadcastChannel(storageKey) : null;
  let skew = 0; // how far the server's clock is ahead, in seconds

  let state: State = initial ?? { status: "loading", user: null, session: null };
  let kept: Kept | null = cookies && initial?.user ? { user: initial.user, expires_at: initial.session?.expires_at as number } : null;
  let seen: string | null | undefined; // what storage had when it was read or written last
  let broken: boolean | void = cookies; // storage is not asked: it does not take what it is given, or with cookies is given nothing
  // What overtakes what: whoever waited compares `generation` (nobody signed in or out meanwhile) and, for a call with
  // a token, `me()` (it is still the same person); a sign-in compares its turn with `settled` (no later one holds);
  // what storage or another tab tells is compared with `ended` (a session that is over does not come back).
  let generation = 0; // rises with every sign-in and sign-out: what began before one does not undo it
  let settled = 0; // the last turn that took effect: an answer to one before it comes to nothing
  let ended: string | null | undefined; // the session that was signed out of here: a slower tab cannot bring it back
  let turn = 0; // rises with each sign-in that begins, and each sign-out
  let starting: Promise<void> | undefined;
  let flight: Promise<void> | null | undefined;
  let mfaTimer: number | undefined;
  let mfaToken: string | undefined;
  let failures = 0;
  let outage: AuthError | null | undefined; // why there is no token, until `resume`
  let retryTimer: number | undefined;
  let resume = 0;

  /** The server's clock, in Unix seconds. */
  const now = () => Date.now() / 1000 + skew;
  /** The id of who is signed in. */
  const me = () => kept?.user?.id;

  // ---- what is stored, by what follows the storage key in its name

  /** Stores a value; null takes it away. True: storage did not take it, which fails no call. */
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
      // what cannot be read says nothing
    }
  }

  /** Names this device by a random name, kept over sign-outs: strangers' guesses at an account are told apart by it. */
  async function deviceId() {
    if (!cookies && (shared || options.storage)) {
      let id = await recall<string>(".device");
      if (!id) await put(".device", (id = crypto.randomUUID()));
      return id;
    }
    return undefined;
  }

  // ---- requests

  /** Sends a request with a body by the names of {@link wired}, and returns its answer's data. Throws AuthError. */
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
      if (gone()) throw stop; // judged below
      // An id that is empty, or dots: proxies tidy paths, and it would be another call.
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
        redirect: "error", // what is sent is for this server alone
      });
      status = response.status;
      const text = (await response.text()) || "null"; // there is nothing to say
      const said = attempt(() => JSON.parse(text));
      const seconds = (name: string) => Date.parse(response.headers.get(name)!) / 1000;
      // Where a page of another origin cannot see the date, a session tells it.
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

  /** Makes a session the current one; null: there is none. */
  function take(next: Kept | null) {
    kept = next;
    failures = 0;
    outage = null;
    clearTimeout(retryTimer);
    if (next?.user) set("signed-in");
  }

  /** Stores a session; null takes it away. */
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
      if (text == seen || seen !== before) return; // no text is null, or undefined; what was read before something was written is old
      const stored: Kept | null = JSON.parse(text!);
      if (!stored || (typeof stored.refresh_token === "string" && nameOf(stored) !== ended)) {
        seen = text;
        if (stored) {
          if (nameOf(stored) !== nameOf(kept)) {
            // Somebody else is signed in: what began before comes to nothing.
            generation++;
            settled = ++turn;
            mfaToken = undefined;
          }
          take(stored);
        } else if (kept) leave();
      }
    } catch {
      // what cannot be read says nothing
    }
  }

  /** Takes what was answered: to the sign-in of a turn, or to a refresh of the token `asked`. */
  async function accept(answer: wire.Session, since?: number, asked?: string | null) {
    const { refresh_token, access_token, expires_at, expires_in, token_type, ...said } = answer ?? {};
    const next: Kept = { refresh_token, access_token, expires_at, expires_in, user: said.user };
    if (cookies ? !said.user || refresh_token : typeof refresh_token !== "string") throw new AuthError("bad_response", cookies && !!said.user && "The server has cookies off.");
    let began = generation;
    if (since) {
      if (since < settled) {
        // Somebody signed in or out since: that one holds, and this one is ended.
        send("/logout", { refresh_token }, access_token).catch(() => {});
        if (cookies) await end();
        throw new AuthError("aborted");
      }
      settled = since;
      began = ++generation;
      mfaToken = undefined;
    } else if (!cookies) {
      await reread(); // a slow answer does not undo what another tab has stored
      if (generation !== began || kept?.refresh_token !== asked) return;
    }
    if (!cookies) await write(next); // in cookies there is nothing to wait for
    if (generation === began) {
      take(next);
      if (since || !cookies) channel?.postMessage({});
    } else {
      await write(kept); // whatever order storage took them in
      if (since) throw new AuthError("aborted");
    }
    return said;
  }

  /** Changes the state to what is kept, and tells of it unless nothing changed. */
  function set(status: Status, pending: Pending | null | undefined = kept && state.user && mfaToken ? state.pending : undefined) {
    if (!pending?.expires_at) {
      mfaToken = undefined; // no factor is waited for any more
      clearTimeout(mfaTimer);
    }
    const user = kept && (kept.user ?? state.user);
    const session = kept && sessionOf(status === "offline" ? { ...kept, access_token: null } : kept);
    const next = { status, user, session, ...(pending && { pending }) } as State;
    if (same(next, state)) return;
    state = next;
    for (const tell of listeners) tell(next);
  }

  /** Nobody is signed in any more, here. */
  function leave() {
    generation++;
    ended = nameOf(kept) ?? ended;
    take(null);
    set("signed-out");
  }

  /** Nobody is signed in any more, in every tab. */
  async function end() {
    channel?.postMessage({ ended: nameOf(kept) });
    leave();
    await write(null);
  }

  /** The sign-in that waits for a factor is over. */
  const dropMfa = () => set(state.user ? state.status : "signed-out", null);

  // ---- tokens

  /** Tries again what came to nothing in an outage. */
  function again() {
    resume = 0;
    if (state.status === "loading") starting = start();
    else if (state.user) refresh().catch(() => {}); // the state has said so
  }

  /** Whether the access token is good for so many seconds. One in a cookie that nothing is known of is. */
  const usable = (margin = 0) => kept && (cookies || kept.access_token) && ((cookies && !kept.expires_at) || kept.expires_at! - now() > margin);
  /** Tokens are renewed this long before they expire. */
  const fresh = () => kept?.user && usable(Math.min(30, (kept.expires_in ?? 900) / 5));

  /** A token that is good now; null where it is in a cookie. */
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

  /** Renews the session; `refused` is a token that the server did not take, null the one in a cookie. One request at a time, whoever asks. */
  const refresh = (refused?: string | null): Promise<void> => (flight ??= renew(refused).finally(() => (flight = null)));

  /** Resolves when it is known who is signed in, or that this cannot be known now. */
  const ready = (): Promise<void> => (starting ??= start());

  /** Finds out who is signed in; with cookies, `ask`s the server whose they are. */
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
      await refresh(null).catch(() => {}); // whether that is an outage, the refresh finds out
    }
  }

  /** Runs something with a token of who is signed in; where that is refused, once more with a new one. */
  async function authorized<T>(run: (bearer: string | null) => Promise<T>, signal?: AbortSignal): Promise<T> {
    let who = me();
    const bearer = await until(token(), signal);
    if ((who ??= me()) !== me()) throw new AuthError("aborted"); // it is somebody else who asked
    try {
      return await run(bearer);
    } catch (error) {
      if (!isRefused(error as AuthError)) throw error;
      await until(refresh(bearer), signal);
      if ((who ??= me()) !== me()) throw error;
      return run(kept?.access_token ?? null);
    }
  }

  /** What {@link refresh} does, until it is done or cannot be. */
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
        if (kept?.refresh_token === answer.refresh_token) return; // however short it lives: one refresh is enough
      } catch (error: any) {
        if (error.code === "aborted") throw error;
        await reread();
        if (generation !== began || kept?.refresh_token !== asked) continue; // another tab was faster, or a sign-out
        if (error.code === "network_error" && !tries) {
          await new Promise<void>((done) => setTimeout(done, 100 + Math.random() * 400));
          continue;
        }
        if (endsSession(error) || (cookies && error.status === 422)) await end(); // 422: there is no cookie with a token
        else {
          // There is no token to be had now: says so, and tries again by itself.
          outage = error;
          // Half of a doubling time and jitter above it, so that tabs and devices do not come back together.
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
        generation++; // what was asked before may be of somebody else
        void start(true);
      }
    };
  // A message may come before what it tells of is in this tab's storage: that has a word of its own when it is.
  const woken = ({ key }: { key?: string | null }) => (key ? key === storageKey && reread() : outage && !outage.retryAfter && again());
  if (browser) for (const event of ["online", "storage"]) globalThis.addEventListener?.(event, woken as any, life);
  // On servers nothing is known, and nothing is looked for, until something is asked for.
  if (!initial && (browser || storage === asked)) queueMicrotask(ready);

  // ---- flows by redirect

  /** Where to come back to: this page by default. Throws for another's origin that is not allowed. */
  function redirectURL(redirectTo: string | undefined): URL | undefined {
    const here = globalThis.location as Location | undefined;
    if (!redirectTo) return here && new URL(here.origin + here.pathname);
    const url = attempt(() => new URL(redirectTo, here?.href));
    if (url && (url.origin === here?.origin || (options.redirectOrigins?.some((o) => o === url.origin || o === url.protocol) ?? !here))) return url;
    throw new AuthError("redirect_not_allowed", "redirectTo is not in redirectOrigins");
  }

  /** Begins one, with a verifier of its own (RFC 7636 section 4): what its request carries, and the name that comes back in the URL. */
  async function beginFlow(redirectTo?: string, link?: boolean): Promise<[fields: Record<string, string | undefined>, id: string]> {
    const url = redirectURL(redirectTo);
    const verifier = crypto.randomUUID() + crypto.randomUUID();
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
    const code_challenge = btoa(String.fromCharCode(...new Uint8Array(digest))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
    const id = Date.now().toString(36) + "-" + verifier.slice(0, 8); // 212 of 244 random bits stay unknown
    // Flows that nobody came back from are forgotten after a day.
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

  /** What was sent last, where it was sent to these. */
  async function sentTo(who: { email?: string | undefined; phone?: string | undefined }): Promise<Partial<Sent>> {
    const sent = await recall<Sent>(".sent");
    return (sent?.to === (who.email ?? who.phone) && sent) || {};
  }

  /** The calls, with the signal that one of them was given. */
  function calls(signal?: AbortSignal): [Calls<Plain>, Calls<AuthClient["mfa"]>, Calls<AuthClient["sessions"]>] {
    /** Every call goes through here. */
    async function call<T>(path: string, body?: object, as?: As, method?: string): Promise<T> {
      const since = turn;
      let began: number; // when it was sent
      const run = (bearer: string | null) => {
        began = generation;
        return send<T>(path, body, bearer, signal, method);
      };
      try {
        return await (as === true ? authorized(run) : run(as as string));
      } catch (error: any) {
        const mfa = error.mfa?.();
        if (as === true && endsSession(error) && generation === began!) await end();
        if (mfa && since >= settled) {
          mfaToken = mfa.mfa_token;
          clearTimeout(mfaTimer);
          mfaTimer = later(dropMfa, mfa.expires_in);
          set(state.user ? state.status : error.code === "mfa_required" ? "mfa" : "enroll", { factors: mfa.factors, expires_at: Math.floor(now() + mfa.expires_in) });
        } else if (mfaToken && error.code === "invalid_token") dropMfa();
        throw error;
      }
    }
    /** A POST whose answer says no more than that it is done. */
    const done = (path: string, body: object, as?: As) => call(path, body, as).then(() => {});
    const remove = (path: string) => call(path, undefined, true, "DELETE");

    /** A POST that signs in; not yet, where the answer names a request for a code. */
    async function enter<T extends object = {}>(path: string, body: object, as?: As): Promise<SignedIn & T> {
      await ready();
      const since = ++turn;
      const answer = await call<any>(path, body, as);
      return answer?.request_id ? { ...answer, session: null } : { ...(await accept(answer, since)), session: state.session } as SignedIn & T;
    }

    /** A request that answers the user, who is taken as the server has them now. */
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
        else await write(kept); // a refresh or a sign-out came in between
      }
      return user;
    }

    async function sendCode({ redirectTo, captchaToken, ...fields }: Fields): Promise<wire.SentCode> {
      const { email, phone } = fields;
      const [more, flow] = phone ? [] : await beginFlow(redirectTo);
      const answer = await call<wire.SentCode>(phone ? "/otp/send" : "/magic-link/send", { ...fields, captchaToken, ...more });
      await put(".sent", { to: email ?? phone, ...answer, flow, data: { ...fields, redirectTo } }); // the captcha's token is good once
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
      // Of a flow that did not begin here, anybody may have written the words.
      if (error) throw new AuthError(((flow && error_code) ?? "oauth_denied") as "oauth_denied", flow && description, 400);
      if (!flow) throw new AuthError("other_browser", "Asked for in another browser: type the code there.");
      return enter("/exchange", { code, code_verifier: flow.verifier }, flow.link);
    }

    return [
      {
        acceptInvitation: async (params) => (await ready(), enter("/invitations/accept", params, !!state.user)), // a page begins with it
        async verifyOtp({ type, code, ...params }) {
          const { request_id, confirm, flow: id } = await sentTo(params);
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
            await put(".sent", { to: email ?? phone, request_id: answer.request_id, confirm: email });
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
            if (error.status !== 401) throw error; // it is over already
          });
          // Only the server can take its cookies away: until it has, somebody is signed in.
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
          if (generation === began) await end(); // not who signed in since
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
        confirm: (params) => done("/me/confirm", params, true),
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
    ];
  }

  /** Calls that throw, as ones that return what a server said or a network did; who gives one up waits no longer. */
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

  return (clients[name] = {
    ...returning(0),
    mfa: returning(1),
    sessions: returning(2),
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
      if (!life.signal.aborted) delete clients[name]; // a second time it would be another one
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
        // Only a refusal is read: what is answered may be a stream without an end.
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
