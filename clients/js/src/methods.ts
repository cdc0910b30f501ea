import { same, until, type As, type Core } from "./core.js";
import { AuthError } from "./error.js";
import { pkce, redirectURL, type Flow } from "./flow.js";
import { mapped, parsed, present, wired } from "./send.js";
import type { AuthClient, OAuthParams, Options, Result, SignedIn, State, User } from "./types.js";
import type * as wire from "./wire.js";

/** What was sent to an address or number last, to take its code and to send it again. */
interface Sent {
  to: string | undefined;
  request_id: string;
  /** Of a magic link's flow. */
  flow?: string | undefined;
  /** A confirmation of an address, not a sign-in. */
  confirms?: boolean;
  /** What it was asked for with. */
  fields?: Fields;
}

type Fields = { email?: string; phone?: string; redirectTo?: string; captchaToken?: string };

/** A call as it is written here: without its options, and it throws what callers get as an error. */
type Throwing<F> = F extends (...args: infer A) => Promise<Result<infer T>> ? (...args: A) => Promise<null extends T ? T | void : T> : never;
type Calls<M> = { [K in keyof M]: Throwing<M[K]> };
type Plain = Omit<AuthClient, "state" | "url" | "subscribe" | "dispose" | "onAuthStateChange" | "fetch" | "mfa" | "sessions">;

/** A client: its calls, and what it knows. `forget` is what it does when it is disposed of. */
export function createMethods(url: string, core: Core, storageKey: string, options: Options, forget: () => void): AuthClient {
  const [storage, set, subscribe, request, authorized, token, refresh, ready, signIn, whoever, end, usable, stop, state, kept, mfaToken] = core;
  const { cookies } = options;
  const sentKey = `${storageKey}.sent`;
  const redirecting: Record<string, Promise<SignedIn | null>> = Object.create(null);

  /** Of who is signed in, if somebody is. */
  const someone = () => !!state().user;
  const remember = async (sent: Sent | null) => storage.setItem(sentKey, JSON.stringify(sent));
  async function sentTo({ email, phone }: { email?: string | undefined; phone?: string | undefined }): Promise<Partial<Sent>> {
    const sent = parsed<Sent>(await storage.getItem(sentKey));
    return (sent?.to === (email ?? phone) && sent) || {};
  }

  const flowKey = (id: string | null | undefined) => `${storageKey}.flow.${id}`;
  /** Begins a flow by redirect, with a verifier of its own: what its request carries, and the name that comes back in the URL. */
  async function beginFlow(redirectTo?: string, link?: boolean): Promise<[fields: Record<string, string | undefined>, id: string]> {
    const url = redirectURL(redirectTo, options);
    const [verifier, code_challenge] = await pkce();
    const id = `${Date.now().toString(36)}-${verifier.slice(0, 8)}`; // 212 bits stay unknown
    // Flows that nobody came back from are forgotten after a day.
    for (const key of Object.keys(storage)) if (parseInt(key.split(flowKey(""))[1]!, 36) < Date.now() - 864e5) storage.removeItem(key);
    await storage.setItem(flowKey(id), JSON.stringify({ verifier, link }));
    url?.searchParams.set("am_flow", id);
    return [{ code_challenge, code_challenge_method: "S256", redirect_to: url?.href }, id];
  }
  /** The flow of a name, if it began here. */
  const findFlow = async (id: string | undefined) => parsed<Flow>(await storage.getItem(flowKey(id)));
  const endFlow = async (id: string | undefined) => storage.removeItem(flowKey(id));

  const redirect = (redirectTo: string | undefined) => redirectTo && redirectURL(redirectTo, options)!.href;

  function go(to: { url: string }) {
    if (/^https?:/i.test(to.url)) globalThis.location?.assign(to.url);
    return to;
  }

  /** The calls, with the signal that one of them was given. */
  function calls(signal?: AbortSignal): [Calls<Plain>, Calls<AuthClient["mfa"]>, Calls<AuthClient["sessions"]>] {
    const call = <T>(method: string, path: string, body?: object, as?: As) => request<T>(signal, method, path, body, as);
    const get = <T>(path: string, as?: As) => call<T>("GET", path, undefined, as);
    const post = <T>(path: string, body: object = {}, as?: As) => call<T>("POST", path, body, as);
    /** A POST whose answer says no more than that it is done. */
    const done = (path: string, body: object, as?: As) => post(path, body, as).then(() => {});
    const remove = (path: string) => call("DELETE", path, undefined, true);
    const enter = <T extends object = {}>(path: string, body: object, as?: As) => signIn<T>(signal, path, body, as);
    const me = (body?: object) => whoever(signal, body);

    async function sendCode({ redirectTo, ...fields }: Fields): Promise<wire.SentCode> {
      const { captchaToken: _, ...again } = fields; // good once
      const { email, phone } = fields;
      const [more, flow] = phone ? [] : await beginFlow(redirectTo);
      const answer = await post<wire.SentCode>(phone ? "/otp/send" : "/magic-link/send", { ...fields, ...more });
      await remember({ to: email ?? phone, ...answer, flow, fields: { ...again, redirectTo } as Fields });
      return answer;
    }

    async function oauthURL({ provider, redirectTo, scopes, ...rest }: OAuthParams): Promise<{ url: string }> {
      const [fields] = await beginFlow(redirectTo);
      return get(`/oauth/${encodeURIComponent(provider)}?${new URLSearchParams(present({ ...wired(rest), ...fields, scopes: scopes?.join(" ") }))}`);
    }

    async function complete(href: string): Promise<SignedIn | null> {
      if (!href) return null;
      const url = new URL(href);
      const { searchParams } = url;
      const [id, code, error, error_code, description] = ["am_flow", "code", "error", "error_code", "error_description"].map((name) => {
        const value = searchParams.get(name);
        searchParams.delete(name);
        return value;
      });
      if (!id || !(code || error)) return null;
      if (globalThis.location?.href === href) history.replaceState(history.state, "", url);
      const flow = await findFlow(id);
      await endFlow(id);
      // Of a flow that did not begin here, anybody may have written the words.
      if (error) throw new AuthError(((flow && error_code) ?? "oauth_denied") as "oauth_denied", flow && description, 400);
      if (!flow) throw new AuthError("other_browser", "Asked for in another browser: type the code of the mail there.");
      return enter("/exchange", { code, code_verifier: flow.verifier }, flow.link);
    }

    return [
      {
        async signUp({ redirectTo, ...params }) {
          const answer = await enter<wire.SentCode>("/signup", { ...params, redirect_to: redirect(redirectTo) });
          const { email, phone } = params;
          if (!answer.session) {
            await remember({ to: email ?? phone, request_id: answer.request_id, confirms: !!email });
            if (!someone()) set("confirm", email ? { email } : { phone: phone! });
          }
          return answer;
        },
        signInWithPassword: (params) => enter("/login", params),
        oauthURL,
        signInWithOAuth: async (params) => go(await oauthURL(params)),
        signInWithIdToken: ({ provider, ...params }) => enter(`/oauth/${encodeURIComponent(provider)}/id-token`, params),
        signInWithOtp: (params) => sendCode(params as object),
        async verifyOtp({ type, code, ...params }) {
          const { request_id, confirms, flow: id } = await sentTo(params);
          const proof = { request_id, ...params };
          if (params.phone) return enter("/otp/verify", { ...proof, otp: code });
          if ((type ?? (request_id ? confirms && "email" : someone() && !params.token && "email")) === "email") {
            const answer = await post<Partial<wire.TakenOver>>("/verify-email", { ...proof, code }, someone());
            if (state().status === "confirm") set("signed-out");
            if (someone()) await me();
            return { user: null, session: null, ...answer };
          }
          const flow = await findFlow(id);
          const result = await enter("/magic-link/verify", { ...proof, code, code_verifier: flow?.verifier });
          await endFlow(id);
          return result;
        },
        async resend(params) {
          const { user } = state();
          const { email } = params;
          const { fields } = await sentTo(params);
          if (!user || fields) return sendCode({ ...fields, ...params } as Fields);
          await (email && email === user.email ? post("/verify-email", {}, true) : me(params));
          return {};
        },
        acceptInvitation: (params) => enter("/invitations/accept", params, someone()),
        completeRedirect: (href = globalThis.location?.href!) => (redirecting[href] ??= complete(href).finally(() => delete redirecting[href])),

        getUser: (accessToken) => (typeof accessToken === "string" ? get<User>("/me", accessToken) : me()),
        getToken: () => token(signal),
        async refresh() {
          await ready();
          await until(refresh(state().session?.access_token ?? null), signal);
          return state().session!;
        },
        async signOut({ scope = "local" } = {}) {
          await ready();
          const path = `/logout?scope=${scope}`;
          if (scope === "others") return done(path, {}, true);
          const live = usable();
          const { refresh_token, access_token } = kept() ?? {};
          if (!kept() && !cookies) return end(true);
          const told = done(path, live ? {} : { refresh_token }, (live && access_token) as string).catch((error) => {
            if (error.status !== 401) throw error; // it is over already
          });
          // Only the server can take its cookies away: until it has, somebody is signed in.
          if (cookies) await told;
          await Promise.all([end(true), remember(null).catch(() => {}), told]);
        },

        resetPasswordForEmail: async (email, { redirectTo, ...params } = {}) => done("/forgot-password", { email, ...params, redirect_to: redirect(redirectTo) }),
        resetPassword: (params) => done("/reset-password", params),
        changePassword: ({ current, next }) => done("/me/password", { current_password: current, new_password: next }, true),
        updateUser: me,
        confirmPhone: ({ phone, code }) => enter("/otp/verify", { phone, otp: code }, true),
        confirm: (params) => done("/me/confirm", params, true),
        exportData: () => get<wire.Export>("/me/export", true),
        async deleteAccount() {
          await remove("/me");
          await end();
        },
        linkIdentity: async ({ provider, redirectTo, scopes, prompt }) => go(await post(`/me/identities/${encodeURIComponent(provider)}`, { ...(await beginFlow(redirectTo, true))[0], scopes, prompt }, true)),
        async unlinkIdentity({ provider }) {
          await remove(`/me/identities/${encodeURIComponent(provider)}`);
          await me();
        },
        settings: () => get<wire.Settings>("/settings"),
      },
      {
        verify: (params) => enter("/2fa/verify", { ...params, mfa_token: mfaToken() }, !mfaToken()),
        enroll: () => post<wire.TOTPSetup>("/2fa/setup-totp", {}, mfaToken() ?? true),
        enable: (params) => enter<wire.RecoveryCodes>("/2fa/verify-and-enable", params, mfaToken() ?? true),
        async disable(params) {
          await post("/2fa/disable", params, true);
          await me();
        },
        recoveryCodes: () => post<wire.RecoveryCodes>("/2fa/recovery-codes", {}, true),
      },
      {
        list: async () => (await get<wire.Sessions>("/sessions", true)).sessions,
        async end(id) {
          const own = id && id === state().session?.id;
          await remove(`/sessions${id === undefined ? "" : `/${encodeURIComponent(id as string)}`}`);
          if (own) await end();
        },
      },
    ];
  }

  /** Calls that throw, as ones that return what a server said or a network did. */
  const returning = (group: 0 | 1 | 2): any =>
    mapped(calls()[group], ([name]) => [
      name,
      async (...args: any[]) => {
        try {
          return { data: (await (calls(args.at(-1)?.signal)[group] as any)[name](...args)) ?? null, error: null };
        } catch (error) {
          if (error instanceof AuthError) return { data: null, error };
          throw error;
        }
      },
    ]);

  return {
    ...returning(0),
    mfa: returning(1),
    sessions: returning(2),
    url,
    subscribe,
    get state() {
      return state();
    },
    dispose() {
      stop();
      forget();
    },

    onAuthStateChange(listener) {
      let last: State | undefined;
      return subscribe((next) => {
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
      const request = new Request(input instanceof Request ? input : new URL(input, globalThis.location?.href ?? url), { ...init, ...(cookies && { credentials: "include" }) });
      const { origin } = new URL(request.url);
      if (![new URL(url).origin, ...(options.fetchOrigins ?? [])].includes(origin)) throw new TypeError(`${origin} is not in fetchOrigins`);
      const go = async (bearer?: string | null) => {
        const one = request.clone();
        if (bearer) one.headers.set("authorization", `Bearer ${bearer}`);
        const response = await (options.fetch ?? fetch)(one);
        // Only a refusal is read: what is answered may be a stream without an end.
        if (response.status === 401 && someone()) throw { response, status: 401, code: (await response.clone().json().catch(() => null))?.code };
        return response;
      };
      return authorized(go, request.signal).catch((error) => error.response ?? (error.code === "missing_token" ? go() : Promise.reject(error)));
    },
  };
}
