/**
 * Bindings for Svelte 4 and 5: readable stores, used as `$auth` in both versions.
 *
 * ```ts
 * export const client = createClient("https://app.example.com");
 * export const auth = authStore(client);   // $auth.status, $auth.user
 * export const user = userStore(client);   // $user
 * ```
 *
 * @module
 */
import { shown, signedIn } from "../framework.js";
import type { AuthClient, State, User } from "../types.js";

/** A readable store (Svelte's store contract): calls `run` with the current value and after every change. */
export interface Readable<T> {
  subscribe(run: (value: T) => void): () => void;
}

function store<T>(client: AuthClient, initial: State | undefined, pick: (state: State) => T): Readable<T> {
  return {
    subscribe(run) {
      let last = pick(shown(client, initial));
      run(last);
      if (typeof document === "undefined") return () => {}; // a server render uses one fixed state
      return client.subscribe(() => {
        const next = pick(shown(client, initial));
        if (next !== last) run((last = next));
      });
    },
  };
}

/**
 * Creates a store of the client's state.
 *
 * @param initial the state that the server rendered with; hydration uses it, so the page does not flicker
 */
export const authStore = (client: AuthClient, initial?: State): Readable<State> => store(client, initial, (state) => state);

/** Creates a store of the signed-in user; null while loading or signed out. Parameters as in {@link authStore}. */
export const userStore = (client: AuthClient, initial?: State): Readable<User | null> =>
  store(client, initial, (state) => (signedIn(state) ? state.user : null));
