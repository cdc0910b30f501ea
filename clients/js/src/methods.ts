import { failed, ok, type Core } from "./core.js";
import { createFlows } from "./flow.js";
import type { AuthClient, CallOptions, OAuthParams, Options, Result, Session, State } from "./types.js";
import type * as wire from "./wire.js";

type Fields = Record<string, unknown>;

/** The wire's names of parameters: fullName is full_name. Values stay as they are. */
const wired = (params: object = {}): Fields => Object.fromEntries(Object.entries(params).map(([name, value]) => [name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`), value]));

/** What was sent to an address or number last, to take its code and to send it again. */
interface Sent {
  to: string;
  request_id?: string | undefined;
  /** Of a magic link's flow. */
  flow?: string;
  /** A confirmation of an address, not a sign-in. */
  confirms?: boolean;
  /** What the request carried. */
  fields?: Fields;
}

/** The calls of a client. */
export function createMethods(core: Core, options: Options): Omit<AuthClient, "state"> {
  const { send, authed, finish, storage } = core;
  const flows = createFlows(core, options);
  const sentKey = `${core.storageKey}.sent`;
  let redirecting: ReturnType<AuthClient["completeRedirect"]> | null = null;

  /** Data replaced: of answers that say no more than that it is done. */
  const done = async (answer: Promise<Result<unknown>>): Promise<Result<null>> => {
    const { error } = await answer;
    return error ? { data: null, error } : ok(null);
  };
  const post = <T>(path: string, body: Fields, o?: CallOptions, bearer?: string | null) => send<T>("POST", path, { body, bearer, signal: o?.signal });
  /** A POST that signs in. */
  const enter = async <T extends object = {}>(path: string, body: Fields, o?: CallOptions, bearer?: string | null) => {
    await core.ready();
    return finish<T>(post<wire.Session & T>(path, body, o, bearer));
  };
  /** A POST of who is signed in. */
  const own = <T>(path: string, body?: Fields, o?: CallOptions) => authed<T>("POST", path, body, o?.signal);

  async function remember(sent: Sent) {
    await storage.setItem(sentKey, JSON.stringify(sent));
  }
  async function sentTo(to: string | undefined): Promise<Sent | null> {
    try {
      const sent = JSON.parse((await storage.getItem(sentKey)) ?? "null");
      return sent?.to === to ? sent : null;
    } catch {
      return null;
    }
  }

  async function sendLink(fields: Fields, o?: CallOptions): Promise<Result<wire.SentCode>> {
    const { redirect_to, ...rest } = fields;
    const { captcha_token: _, ...kept } = fields; // good once
    if (rest.phone) {
      const result = await post<wire.SentCode>("/otp/send", rest, o);
      if (result.data) await remember({ to: String(rest.phone), ...result.data, fields: kept });
      return result;
    }
    const { data: flow, error } = await flows.begin(redirect_to as string | undefined);
    if (error) return { data: null, error };
    const result = await post<wire.SentCode>("/magic-link/send", { ...rest, ...flow.fields }, o);
    if (result.data) await remember({ to: String(rest.email), ...result.data, flow: flow.id, fields: kept });
    else await flows.take(flow.id);
    return result;
  }

  const oauthQuery = ({ provider, redirectTo: _, scopes, ...rest }: OAuthParams, fields: object) =>
    `/oauth/${encodeURIComponent(provider)}?${new URLSearchParams(Object.entries({ ...wired(rest), ...fields, ...(scopes && { scopes: scopes.join(" ") }) }).filter(([, v]) => v !== undefined) as [string, string][])}`;

  async function oauthURL(params: OAuthParams, o?: CallOptions): Promise<Result<{ url: string }>> {
    const { data: flow, error } = await flows.begin(params.redirectTo);
    return error ? { data: null, error } : send("GET", oauthQuery(params, flow.fields), { signal: o?.signal });
  }

  const go = async (answer: Promise<Result<{ url: string }>>) => {
    const result = await answer;
    if (result.data) globalThis.location?.assign(result.data.url);
    return result;
  };

  async function complete(href: string, o?: CallOptions): ReturnType<AuthClient["completeRedirect"]> {
    const url = new URL(href);
    const query = url.searchParams;
    const [id, code, refusal] = ["am_flow", "code", "error"].map((name) => query.get(name));
    if (!id || !(code || refusal)) return ok(null);
    if (globalThis.location?.href === href) {
      for (const name of ["am_flow", "code", "error", "error_code", "error_description"]) query.delete(name);
      history.replaceState(history.state, "", url);
    }
    if (id.startsWith("popup-")) {
      // Whoever opened this window has the verifier, and waits.
      const channel = new BroadcastChannel(id);
      channel.postMessage({ code, error: refusal, error_code: query.get("error_code"), href });
      channel.close();
      globalThis.close?.();
      return ok(null);
    }
    const flow = await flows.take(id);
    const why = new URL(href).searchParams;
    if (refusal) return failed((why.get("error_code") ?? "oauth_denied") as "oauth_denied", why.get("error_description") ?? "The sign-in was not completed.", 400);
    if (!flow) return failed("other_browser", "This was asked for in another browser: go on there, or type the code of the mail.");
    const bearer = flow.link ? await core.token(o?.signal) : null;
    return enter("/exchange", { code, code_verifier: flow.verifier }, o, bearer?.data);
  }

  const methods: Omit<AuthClient, "state"> = {
    url: core.url,
    subscribe: core.subscribe,
    onAuthStateChange(listener) {
      let last: State | null = null;
      return core.subscribe((next) => {
        const before = last;
        if (next.status === "loading") return;
        last = next;
        const { user, session } = next;
        if (!before) return listener("INITIAL_SESSION", session);
        if (!user !== !before.user || user?.id !== before.user?.id) return listener(user ? "SIGNED_IN" : "SIGNED_OUT", session);
        if (next.status === "offline" || !user) return;
        if (JSON.stringify(user) !== JSON.stringify(before.user)) listener("USER_UPDATED", session);
        if (JSON.stringify(session) !== JSON.stringify(before.session)) listener("TOKEN_REFRESHED", session);
      });
    },

    async signUp({ redirectTo, ...params }, o) {
      const target = redirectTo ? flows.target(redirectTo) : ok(null);
      if (target.error) return target;
      await core.ready();
      const fields = { ...wired(params), ...(target.data && { redirect_to: target.data.href }) };
      const result = await post<wire.Session | wire.ConfirmationRequired>("/signup", fields, o);
      if (!result.data || "access_token" in result.data) return finish(result as Result<wire.Session>);
      const { user, request_id } = result.data;
      const { email, phone } = params;
      await remember({ to: (email ?? phone)!, request_id, confirms: !!email });
      if (!core.state.user) core.set("confirm", null, null, email ? { email } : { phone: phone! });
      return ok({ user, session: null });
    },
    signInWithPassword: (params, o) => enter("/login", wired(params), o),
    oauthURL,
    signInWithOAuth: (params, o) => go(oauthURL(params, o)),
    signInWithIdToken: ({ provider, ...params }, o) => enter(`/oauth/${encodeURIComponent(provider)}/id-token`, wired(params), o),
    signInWithOtp: (params, o) => sendLink(wired(params), o),
    async verifyOtp({ code, token, type, ...params }, o) {
      const { email, phone } = params;
      const fields = wired(params);
      const sent = await sentTo(email ?? phone);
      fields.request_id ??= sent?.request_id;
      if (phone) return enter("/otp/verify", { ...fields, otp: code }, o);
      const proof = token ? { ...fields, token } : { ...fields, code };
      if ((type ?? (sent ? sent.confirms && "email" : core.state.user && !token && "email")) === "email") {
        const bearer = core.state.user ? (await core.token(o?.signal)).data : null;
        const { data, error } = await post<Partial<wire.TakenOver>>("/verify-email", proof, o, bearer);
        if (error) return { data, error };
        if (core.state.status === "confirm") core.set("signed-out");
        if (core.state.user) await methods.getUser(o);
        return ok({ user: null, session: null, ...data });
      }
      const flow = sent?.flow && (await storage.getItem(`${core.storageKey}.flow.${sent.flow}`));
      const result = await enter("/magic-link/verify", { ...proof, ...(flow && { code_verifier: JSON.parse(flow).verifier }) }, o);
      if (result.data && sent?.flow) await flows.take(sent.flow);
      return result;
    },
    async resend({ email, phone, ...params }, o) {
      const to = (email ?? phone)!;
      const sent = await sentTo(to);
      const { user } = core.state;
      if (user && email && user.email === email && !user.email_verified) return own("/verify-email", {}, o);
      if (user && (email ? user.email !== email : user.phone !== phone)) return authed("PATCH", "/me", { ...wired(params), ...(email ? { email } : { phone }) }, o?.signal).then(({ error }) => (error ? { data: null, error } : ok({})));
      return sendLink({ ...sent?.fields, ...wired(params), ...(email ? { email } : { phone }) }, o);
    },
    acceptInvitation: async (params, o) => enter("/invitations/accept", wired(params), o, core.state.user && (await core.token(o?.signal)).data),
    completeRedirect(href = globalThis.location?.href ?? "", o) {
      if (!href) return Promise.resolve(ok(null));
      return (redirecting ??= complete(href, o).finally(() => (redirecting = null)));
    },

    async getUser(accessToken, o) {
      if (typeof accessToken === "string") return send("GET", "/me", { bearer: accessToken, signal: o?.signal });
      await core.ready();
      const began = core.generation;
      const result = await authed<wire.User>("GET", "/me", undefined, accessToken?.signal);
      if (result.data) await core.setUser(result.data, began);
      return result;
    },
    getToken: (o) => core.token(o?.signal),
    async refresh(o) {
      await core.ready();
      return core.until(core.refresh(core.kept?.access_token ?? null) as Promise<Result<Session>>, o?.signal);
    },
    async fetch(input, init) {
      const here = globalThis.location?.href ?? core.url;
      const request = new Request(input instanceof Request ? input : new URL(input, here), init);
      const { origin } = new URL(request.url);
      if (origin !== new URL(core.url).origin && !options.fetchOrigins?.includes(origin)) throw new TypeError(`fetch gives the token to the project's origin and fetchOrigins, not to ${origin}.`);
      const go = (bearer: string | null) => {
        const one = new Request(request.clone(), core.cookies ? { credentials: "include" } : {});
        if (bearer) one.headers.set("authorization", `Bearer ${bearer}`);
        return (options.fetch ?? fetch)(one);
      };
      const first = await core.token(request.signal);
      if (first.error && first.error.code !== "missing_token") throw first.error;
      const response = await go(first.data);
      if (response.status !== 401 || !core.state.user) return response;
      const body = await response.clone().json().catch(() => null);
      if (!body || !core.refused({ status: 401, code: body.code })) return response;
      const next = await core.refresh(first.data);
      return next.error ? response : go(core.kept?.access_token ?? null);
    },
    async signOut({ scope = "local" } = {}, o) {
      if (scope === "others") return done(own("/logout?scope=others", {}, o));
      await core.ready();
      const { kept, cookies } = core;
      const body = cookies || core.usable() ? {} : { refresh_token: kept?.refresh_token };
      const tell = () => send("POST", `/logout?scope=${scope}`, { body, bearer: core.usable() ? bearer : null, signal: o?.signal, keepalive: true });
      const bearer = kept?.access_token;
      const answer = kept || cookies ? tell() : null;
      if (cookies) {
        // Only the server can take its cookies away: until it has, somebody is signed in.
        const { error } = (await answer)!;
        if (error && error.status !== 401) return { data: null, error };
      }
      await core.end();
      const { error } = (await answer) ?? {};
      return error && error.status !== 401 ? { data: null, error } : ok(null);
    },

    async resetPasswordForEmail(email, { redirectTo, ...params } = {}, o) {
      const target = redirectTo ? flows.target(redirectTo) : ok(null);
      return target.error ? target : done(post("/forgot-password", { email, ...wired(params), ...(target.data && { redirect_to: target.data.href }) }, o));
    },
    resetPassword: (params, o) => done(post("/reset-password", wired(params), o)),
    changePassword: ({ current, next }, o) => done(own("/me/password", { current_password: current, new_password: next }, o)),
    async updateUser(params, o) {
      await core.ready();
      const began = core.generation;
      const result = await authed<wire.User>("PATCH", "/me", wired(params), o?.signal);
      if (result.data) await core.setUser(result.data, began);
      return result;
    },
    async confirmPhone({ phone, code }, o) {
      const { data, error } = await core.token(o?.signal);
      return error ? { data: null, error } : enter("/otp/verify", { phone, otp: code }, o, data);
    },
    confirm: (params, o) => done(own("/me/confirm", wired(params), o)),
    exportData: (o) => authed("GET", "/me/export", undefined, o?.signal),
    async deleteAccount(o) {
      const result = await done(authed("DELETE", "/me", undefined, o?.signal));
      if (!result.error) await core.end();
      return result;
    },

    mfa: {
      async verify(params, o) {
        const { mfaToken } = core;
        if (mfaToken) return enter("/2fa/verify", { ...wired(params), mfa_token: mfaToken }, o);
        return finish(own<wire.Session>("/2fa/verify", wired(params), o));
      },
      enroll: (o) => (core.mfaToken ? post("/2fa/setup-totp", {}, o, core.mfaToken) : own("/2fa/setup-totp", {}, o)),
      enable: (params, o) => (core.mfaToken ? enter<wire.RecoveryCodes>("/2fa/verify-and-enable", wired(params), o, core.mfaToken) : finish(own<wire.Session & wire.RecoveryCodes>("/2fa/verify-and-enable", wired(params), o))),
      async disable(params, o) {
        const result = await done(own("/2fa/disable", wired(params), o));
        if (!result.error) await methods.getUser(o);
        return result;
      },
      recoveryCodes: (o) => own("/2fa/recovery-codes", {}, o),
    },
    async linkIdentity({ provider, redirectTo, scopes, prompt }, o) {
      const { data: flow, error } = await flows.begin(redirectTo, { link: true });
      return error ? { data: null, error } : go(own(`/me/identities/${encodeURIComponent(provider)}`, { ...flow.fields, scopes, prompt }, o));
    },
    async unlinkIdentity({ provider }, o) {
      const result = await done(authed("DELETE", `/me/identities/${encodeURIComponent(provider)}`, undefined, o?.signal));
      if (!result.error) await methods.getUser(o);
      return result;
    },
    sessions: {
      async list(o) {
        const { data, error } = await authed<wire.Sessions>("GET", "/sessions", undefined, o?.signal);
        return error ? { data, error } : ok(data.sessions);
      },
      async end(id, o) {
        const result = await done(authed("DELETE", `/sessions${id ? `/${encodeURIComponent(id)}` : ""}`, undefined, o?.signal));
        if (!result.error && id && id === core.state.session?.id) await core.end();
        return result;
      },
    },
    settings: (o) => send("GET", "/settings", { signal: o?.signal }),
    dispose: core.dispose,
  };
  return methods;
}
