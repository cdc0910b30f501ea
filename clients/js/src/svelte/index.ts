/**
 * Svelte 4 and 5: readable stores, which both versions read as `$auth`.
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

/** A store as Svelte's contract has it: the value at once, then every change. */
export interface Readable<T> {
  subscribe(run: (value: T) => void): () => void;
}

function store<T>(client: AuthClient, initial: State | undefined, pick: (state: State) => T): Readable<T> {
  return {
    subscribe(run) {
      let last = pick(shown(client, initial));
      run(last);
      if (typeof document === "undefined") return () => {}; // one rendering on a server sees one state
      return client.subscribe(() => {
        const next = pick(shown(client, initial));
        if (next !== last) run((last = next));
      });
    },
  };
}

/**
 * The state of a client.
 *
 * @param initial what the server rendered with: hydration begins with it, and nothing flashes
 */
export const authStore = (client: AuthClient, initial?: State): Readable<State> => store(client, initial, (state) => state);

/** Who is signed in; null while it is not known, or nobody is. Parameters are those of {@link authStore}. */
export const userStore = (client: AuthClient, initial?: State): Readable<User | null> =>
  store(client, initial, (state) => (signedIn(state) ? state.user : null));
