/**
 * Vue 3.
 *
 * ```ts
 * createApp(App).use(createAuth(createClient("https://app.example.com"))).mount("#app");
 *
 * const { status, user, client } = useAuth(); // in a component: refs, and the client
 * ```
 *
 * @module
 */
import { computed, inject, shallowRef, type App, type ComputedRef, type FunctionalComponent, type InjectionKey, type Plugin, type ShallowRef } from "vue";
import { shown, signedIn, signedOut } from "../framework.js";
import type { AuthClient, State, User } from "../types.js";

/** What {@link useAuth} returns. */
export interface Auth {
  client: AuthClient;
  state: Readonly<ShallowRef<State>>;
  status: ComputedRef<State["status"]>;
  /** Who is signed in; null while it is not known, or nobody is. */
  user: ComputedRef<User | null>;
}

const key: InjectionKey<Auth> = Symbol("authmount");

/**
 * A plugin that makes a client known to an application.
 *
 * @param initial what the server rendered with: hydration begins with it, and nothing flashes
 */
export function createAuth(client: AuthClient, initial?: State): Plugin {
  return {
    install(app: App) {
      const state = shallowRef(shown(client, initial));
      app.provide(key, {
        client,
        state,
        status: computed(() => state.value.status),
        user: computed(() => (signedIn(state.value) ? state.value.user : null)),
      });
      if (typeof document === "undefined") return; // one rendering on a server sees one state
      const stop = client.subscribe(() => (state.value = shown(client, initial)));
      const unmount = app.unmount;
      app.unmount = () => {
        stop();
        unmount();
      };
    },
  };
}

/** The state as refs, and the client to change it with. */
export function useAuth(): Auth {
  const auth = inject(key, null);
  if (!auth) throw new Error("useAuth needs app.use(createAuth(client)).");
  return auth;
}

/** Who is signed in; null while it is not known, or nobody is. */
export const useUser = (): ComputedRef<User | null> => useAuth().user;

/** Draws its slot while somebody is signed in, also offline. */
export const SignedIn: FunctionalComponent = (_, { slots }) => (signedIn(useAuth().state.value) ? slots.default?.() : undefined);

/** Draws its slot while nobody is signed in, and not while that is yet to be found out. */
export const SignedOut: FunctionalComponent = (_, { slots }) => (signedOut(useAuth().state.value) ? slots.default?.() : undefined);
