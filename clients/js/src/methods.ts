import { same, type Core } from "./core.js";
import { AuthError, isRefused } from "./error.js";
import { createFlows, redirectURL } from "./flow.js";
import { parsed, present } from "./send.js";
import type { AuthClient, CallOptions, OAuthParams, Options, Result, SignedIn, State, User } from "./types.js";
import type * as wire from "./wire.js";

type Fields = Record<string, unknown>;
type O = CallOptions | undefined;

/** The wire's names of parameters: fullName is full_name. Values stay as they are. */
const wired = (params: object = {}): Fields => Object.fromEntries(Object.entries(params).map(([name, value]) => [name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`), value]));

/** What was sent to an address or number last, to take its code and to send it again. */
interface Sent {
  to: string | undefined;
  request_id: string;
  /** Of a magic link's flow. */
  flow?: string;
  /** A confirmation of an address, not a sign-in. */
  confirms?: boolean;
  /** What the request carried. */
  fields?: Fields;
}

/** A call as it is written here: it throws what callers get as an error. */
type Throwing<F> = F extends (...args: infer A) => Promise<Result<infer T>> ? (...args: A) => Promise<null extends T ? T | void : T> : never;

/** Calls that throw, as ones that return what a server said or a network did. */
const returning = <M>(calls: { [K in keyof M]: Throwing<M[K]> }): M =>
  Object.fromEntries(
    Object.entries<any>(calls).map(([name, run]) => [
      name,
      async (...args: unknown[]) => {
        try {
          return { data: (await run(...args)) ?? null, error: null };
        } catch (error) {
          if (error instanceof AuthError) return { data: null, error };
          throw error;
        }
      },
    ]),
  ) as M;

type Plain = Omit<AuthClient, "state" | "url" | "subscribe" | "dispose" | "onAuthStateChange" | "fetch" | "mfa" | "sessions">;

/** The calls of a client. */
export function createMethods(core: Core, options: Options): Omit<AuthClient, "state"> {
  const { call, storage, token } = core;
  const flows = createFlows(core, options);
  const sentKey = `${core.storageKey}.sent`;
  const redirecting: Record<string, Promise<SignedIn | null>> = Object.create(null);

  const post = <T>(path: string, body: object | undefined, o?: O, as?: boolean | string | null) => call<T>("POST", path, wired(body), o, as);
  /** A POST whose answer says no more than that it is done. */
  const done = async (path: string, body?: object, o?: O, as?: boolean) => void (await post(path, body, o, as));
  const del = async (path: string, o?: O) => void (await call("DELETE", path, undefined, o, true));

  /** A POST that signs in; not yet, where the answer names a request for a code. */
  async function enter<T extends object = {}>(path: string, body: object, o?: O, as?: boolean | string | null): Promise<SignedIn & T> {
    await core.ready();
    const since = core.begin();
    const answer = await post<any>(path, body, o, as);
    const { user, recovery_codes, recovery_codes_left, request_id } = answer ?? {};
    if (!request_id) await core.accept(answer, undefined, since);
    return present({ user, recovery_codes, recovery_codes_left, request_id, session: request_id ? null : core.session }) as unknown as SignedIn & T;
  }
  /** Of who is signed in, if somebody is. */
  const someone = () => !!core.state.user;

  /** A request that answers the user. */
  async function user(method: string, body?: object, o?: O): Promise<User> {
    await core.ready();
    const began = core.generation;
    const data = await call<User>(method, "/me", body, o, true);
    await core.setUser(data, began);
    return data;
  }

  const remember = async (sent: Sent | null) => void (await storage.setItem(sentKey, JSON.stringify(sent)));
  async function sentTo(to: string | undefined): Promise<Sent | null> {
    const sent = parsed<Sent>(await storage.getItem(sentKey));
    return sent?.to === to ? sent : null;
  }
  const redirect = (redirectTo: string | undefined) => redirectTo && { redirect_to: redirectURL(redirectTo, options)!.href };

  async function sendCode({ redirect_to, ...fields }: Fields, o?: O): Promise<wire.SentCode> {
    const { captcha_token: _, ...again } = fields; // good once
    const to = (fields.email ?? fields.phone) as string;
    if (fields.phone) {
      const answer = await post<wire.SentCode>("/otp/send", fields, o);
      await remember({ to, ...answer, fields: again });
      return answer;
    }
    const [flow, more] = await flows.begin(redirect_to as string | undefined);
    const answer = await post<wire.SentCode>("/magic-link/send", { ...fields, ...more }, o);
    await remember({ to, ...answer, flow, fields: { ...again, redirect_to } });
    return answer;
  }

  async function oauthURL({ provider, redirectTo, scopes, ...rest }: OAuthParams, o?: O): Promise<{ url: string }> {
    const [, fields] = await flows.begin(redirectTo);
    const query = new URLSearchParams(present({ ...wired(rest), ...fields, scopes: scopes?.join(" ") }) as Record<string, string>);
    return call("GET", `/oauth/${encodeURIComponent(provider)}?${query}`, undefined, o);
  }

  function go(to: { url: string }) {
    if (/^https?:/i.test(to.url)) globalThis.location?.assign(to.url);
    return to;
  }

  async function complete(href: string, o?: O): Promise<SignedIn | null> {
    if (!href) return null;
    const url = new URL(href);
    const taken = ["am_flow", "code", "error", "error_code", "error_description"].map((name) => {
      const value = url.searchParams.get(name);
      url.searchParams.delete(name);
      return value;
    });
    const [id, code, error, error_code, description] = taken;
    if (!id || !(code || error)) return null;
    if (globalThis.location?.href === href) history.replaceState(history.state, "", url);
    const flow = await flows.find(id);
    await flows.end(id);
    // Of a flow that did not begin here, anybody may have written the words.
    if (error) throw new AuthError(((flow && error_code) ?? "oauth_denied") as "oauth_denied", flow && description, 400);
    if (!flow) throw new AuthError("other_browser", "Asked for in another browser: type the code of the mail there.");
    return enter("/exchange", { code, code_verifier: flow.verifier }, o, flow.link);
  }

  const methods = returning<Plain>({
    async signUp({ redirectTo, ...params }, o) {
      const answer = await enter<wire.SentCode>("/signup", { ...params, ...redirect(redirectTo) }, o);
      const { email, phone } = params;
      if (!answer.session) {
        await remember({ to: email ?? phone, request_id: answer.request_id, confirms: !!email });
        if (!someone()) core.set("confirm", null, null, email ? { email } : { phone: phone! });
      }
      return answer;
    },
    signInWithPassword: (params, o) => enter("/login", params, o),
    oauthURL,
    signInWithOAuth: async (params, o) => go(await oauthURL(params, o)),
    signInWithIdToken: ({ provider, ...params }, o) => enter(`/oauth/${encodeURIComponent(provider)}/id-token`, params, o),
    signInWithOtp: (params, o) => sendCode(wired(params), o),
    async verifyOtp({ type, code, ...params }, o) {
      const { email, phone, token: link } = params;
      const sent = await sentTo(email ?? phone);
      const proof = { request_id: sent?.request_id, ...params };
      if (phone) return enter("/otp/verify", { ...proof, otp: code }, o);
      if ((type ?? (sent ? sent.confirms && "email" : someone() && !link && "email")) === "email") {
        const answer = await post<Partial<wire.TakenOver>>("/verify-email", { ...proof, code }, o, someone());
        if (core.state.status === "confirm") core.set("signed-out");
        if (someone()) await user("GET", undefined, o);
        return { user: null, session: null, ...answer };
      }
      const flow = await flows.find(sent?.flow);
      const result = await enter("/magic-link/verify", { ...proof, code, code_verifier: flow?.verifier }, o);
      await flows.end(sent?.flow);
      return result;
    },
    async resend({ email, phone, ...params }, o) {
      const who = core.state.user;
      const fields = { ...wired(params), ...(email ? { email } : { phone }) };
      const again = (await sentTo(email ?? phone))?.fields;
      if (!who || again) return sendCode({ ...again, ...fields }, o);
      if (email && email === who.email) await done("/verify-email", {}, o, true);
      else await user("PATCH", fields, o);
      return {};
    },
    acceptInvitation: (params, o) => enter("/invitations/accept", params, o, someone()),
    completeRedirect: (href = globalThis.location?.href ?? "", o) => (redirecting[href] ??= complete(href, o).finally(() => delete redirecting[href])),

    getUser: (accessToken, o) => (typeof accessToken === "string" ? call<User>("GET", "/me", undefined, o, accessToken) : user("GET", undefined, accessToken)),
    getToken: (o) => token(o?.signal),
    async refresh(o) {
      await core.ready();
      await core.until(core.refresh(core.kept?.access_token ?? null), o?.signal);
      return core.session!;
    },
    async signOut({ scope = "local" } = {}, o) {
      await core.ready();
      const path = `/logout?scope=${scope}`;
      if (scope === "others") return done(path, {}, o, true);
      const { kept, cookies } = core;
      const live = core.usable();
      if (!kept && !cookies) return core.end(true);
      const told = done(path, live ? {} : { refresh_token: kept?.refresh_token }, o, (live && kept?.access_token) as false).catch((error) => {
        if (error.status !== 401) throw error; // it is over already
      });
      // Only the server can take its cookies away: until it has, somebody is signed in.
      if (cookies) await told;
      await Promise.all([core.end(true), remember(null).catch(() => {}), told]);
    },

    resetPasswordForEmail: async (email, { redirectTo, ...params } = {}, o) => done("/forgot-password", { email, ...params, ...redirect(redirectTo) }, o),
    resetPassword: (params, o) => done("/reset-password", params, o),
    changePassword: ({ current, next }, o) => done("/me/password", { current_password: current, new_password: next }, o, true),
    updateUser: (params, o) => user("PATCH", wired(params), o),
    confirmPhone: ({ phone, code }, o) => enter("/otp/verify", { phone, otp: code }, o, true),
    confirm: (params, o) => done("/me/confirm", params, o, true),
    exportData: (o) => call<wire.Export>("GET", "/me/export", undefined, o, true),
    async deleteAccount(o) {
      await del("/me", o);
      await core.end();
    },
    linkIdentity: async ({ provider, redirectTo, scopes, prompt }, o) => go(await post(`/me/identities/${encodeURIComponent(provider)}`, { ...(await flows.begin(redirectTo, true))[1], scopes, prompt }, o, true)),
    async unlinkIdentity({ provider }, o) {
      await del(`/me/identities/${encodeURIComponent(provider)}`, o);
      await user("GET", undefined, o);
    },
    settings: (o) => call<wire.Settings>("GET", "/settings", undefined, o),
  });

  return {
    ...methods,
    url: core.url,
    subscribe: core.subscribe,
    dispose: core.dispose,

    onAuthStateChange(listener) {
      let last: State | undefined;
      return core.subscribe((next) => {
        const { status, user, session } = next;
        if (status === "loading") return;
        const before = last;
        last = next;
        if (!before) listener("INITIAL_SESSION", session);
        else if (user?.id !== before.user?.id) listener(user ? "SIGNED_IN" : "SIGNED_OUT", session);
        else if (user && status !== "offline") {
          if (!same(user, before.user)) listener("USER_UPDATED", session);
          if (!same(session, before.session)) listener("TOKEN_REFRESHED", session);
        }
      });
    },

    async fetch(input, init) {
      const request = new Request(input instanceof Request ? input : new URL(input, globalThis.location?.href ?? core.url), init);
      const { origin } = new URL(request.url);
      if (![new URL(core.url).origin, ...(options.fetchOrigins ?? [])].includes(origin)) throw new TypeError(`${origin} is not in fetchOrigins`);
      const go = (bearer: string | null | undefined) => {
        const one = new Request(request.clone(), core.cookies ? { credentials: "include" } : {});
        if (bearer) one.headers.set("authorization", `Bearer ${bearer}`);
        return (options.fetch ?? fetch)(one);
      };
      const bearer = await token(request.signal).catch((error) => {
        if (error.code !== "missing_token") throw error;
        return null;
      });
      const response = await go(bearer);
      // Only a refusal is read: what is answered may be a stream without an end.
      if (response.status !== 401 || !someone() || !isRefused({ status: 401, code: (await response.clone().json().catch(() => null))?.code })) return response;
      const began = core.generation;
      await core.refresh(bearer);
      if (core.generation !== began) return response;
      return go(core.kept?.access_token);
    },

    mfa: returning<AuthClient["mfa"]>({
      verify: (params, o) => enter("/2fa/verify", { ...params, ...(core.mfaToken && { mfa_token: core.mfaToken }) }, o, !core.mfaToken),
      enroll: (o) => post<wire.TOTPSetup>("/2fa/setup-totp", {}, o, core.mfaToken ?? true),
      enable: (params, o) => enter<wire.RecoveryCodes>("/2fa/verify-and-enable", params, o, core.mfaToken ?? true),
      async disable(params, o) {
        await done("/2fa/disable", params, o, true);
        await user("GET", undefined, o);
      },
      recoveryCodes: (o) => post<wire.RecoveryCodes>("/2fa/recovery-codes", {}, o, true),
    }),
    sessions: returning<AuthClient["sessions"]>({
      list: async (o) => (await call<wire.Sessions>("GET", "/sessions", undefined, o, true)).sessions,
      async end(id, o) {
        const own = id && id === core.state.session?.id;
        await del(`/sessions${id === undefined ? "" : `/${encodeURIComponent(id)}`}`, o);
        if (own) await core.end();
      },
    }),
  };
}
