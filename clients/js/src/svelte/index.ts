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
import type { AuthClient, Metadata, State, User } from "../types.js";

/** A readable store (Svelte's store contract): calls `run` with the current value and after every change. */
export interface Readable<T> {
  subscribe(run: (value: T) => void): () => void;
}

function store<T, M extends Metadata>(client: AuthClient<M>, initial: State<M> | undefined, pick: (state: State<M>) => T): Readable<T> {
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
export const authStore = <M extends Metadata = {}>(client: AuthClient<M>, initial?: State<M>): Readable<State<M>> => store(client, initial, (state) => state);

/** Creates a store of the signed-in user; null while loading or signed out. Parameters as in {@link authStore}. */
export const userStore = <M extends Metadata = {}>(client: AuthClient<M>, initial?: State<M>): Readable<User<M> | null> =>
  store(client, initial, (state) => (signedIn(state) ? state.user : null));
