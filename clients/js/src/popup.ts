/**
 * Sign-in at a provider in a window of its own.
 *
 * ```ts
 * button.onclick = () => signInWithPopup(auth, { provider: "google", redirectTo: "/signed-in" });
 * completePopup();                                  // on the page /signed-in
 * ```
 *
 * The window has no opener, so that the provider's pages cannot reach this one. It comes back to a page of this
 * origin, which hands its URL over by a BroadcastChannel; the verifier of the flow (RFC 7636) never leaves this one.
 *
 * @module
 */
import { AuthError } from "./error.js";
import type { AuthClient, CallOptions, OAuthParams, Result, SignedIn } from "./types.js";

const parameter = "am_popup";
const channelOf = (id: string) => new BroadcastChannel(`authmount.popup.${id}`);

/** Of {@link signInWithPopup}. */
export interface PopupOptions extends CallOptions {
  /** Of the window, as window.open takes them. Default: 480 by 640. */
  features?: string;
}

/**
 * Signs in. Call it from a click: browsers open no window otherwise.
 *
 * Whether the window was closed is not to be seen, since it has no opener: give the person a way to give up, by the
 * signal. Errors: those of `completeRedirect`; `aborted`.
 */
export async function signInWithPopup(auth: AuthClient, params: OAuthParams, { signal, features = "width=480,height=640" }: PopupOptions = {}): Promise<Result<SignedIn>> {
  const id = crypto.randomUUID();
  const target = new URL(params.redirectTo ?? location.origin + location.pathname, location.href);
  target.searchParams.set(parameter, id);
  const to = await auth.oauthURL({ ...params, redirectTo: target.href }, { signal });
  if (to.error) return to;
  const channel = channelOf(id);
  try {
    const back = await new Promise<string>((done, fail) => {
      const stop = () => fail(new AuthError("aborted", "The call was given up."));
      if (signal?.aborted) return stop();
      signal?.addEventListener("abort", stop, { once: true });
      channel.onmessage = ({ data }) => typeof data === "string" && done(data);
      if (/^https?:/i.test(to.data?.url)) open(to.data.url, "_blank", `popup,noopener,${features}`);
    });
    const result = await auth.completeRedirect(back, { signal });
    if (result.error) return result;
    if (!result.data) throw new AuthError("bad_response", "The window came back without a sign-in.");
    return { data: result.data, error: null };
  } catch (error) {
    if (error instanceof AuthError) return { data: null, error };
    throw error;
  } finally {
    channel.close();
  }
}

/**
 * On the page that the window comes back to, before anything else: hands over and closes the window.
 *
 * @returns false where this is no such window, such as after a sign-in by redirect
 */
export function completePopup(href: string = location.href): boolean {
  const id = new URL(href).searchParams.get(parameter);
  if (!id) return false;
  const channel = channelOf(id);
  channel.postMessage(href);
  channel.close();
  globalThis.close?.();
  return true;
}
