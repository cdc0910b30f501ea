/**
 * Sign-in with a provider in a popup window.
 *
 * ```ts
 * button.onclick = () => signInWithPopup(auth, { provider: "google", redirectTo: "/signed-in" });
 * completePopup();                                  // on the page /signed-in
 * ```
 *
 * The popup has no opener, so the provider's pages cannot access this page. It returns to a page of this origin, which
 * sends its URL through a BroadcastChannel. The flow's code verifier (RFC 7636) never leaves this page.
 *
 * @module
 */
import { AuthError } from "./error.js";
import type { AuthClient, CallOptions, Metadata, OAuthParams, Result, SignedIn } from "./types.js";

const parameter = "am_popup";
const channelOf = (id: string) => new BroadcastChannel(`authmount.popup.${id}`);

/** Options of {@link signInWithPopup}. */
export interface PopupOptions extends CallOptions {
  /** The window features for `window.open`. Default: "width=480,height=640". */
  features?: string;
}

/**
 * Signs in with a provider in a popup. Call it in a click handler, because browsers block other popups.
 *
 * It cannot detect that the user closed the popup, because the popup has no opener. Offer a cancel button that aborts
 * the signal. Errors: those of `completeRedirect`; `aborted`.
 */
export async function signInWithPopup<M extends Metadata = {}>(auth: AuthClient<M>, params: OAuthParams, { signal, features = "width=480,height=640" }: PopupOptions = {}): Promise<Result<SignedIn<M>>> {
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
 * Sends the popup's URL to the page that opened it, and closes the popup. Call it first on the page at `redirectTo`.
 *
 * @returns false if this page is not such a popup, for example after a sign-in by redirect
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
