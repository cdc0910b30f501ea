/**
 * Bindings for Vue 3.
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
import type { AuthClient, Metadata, State, User } from "../types.js";

/** The result of {@link useAuth}. */
export interface Auth<M extends Metadata = {}> {
  client: AuthClient<M>;
  state: Readonly<ShallowRef<State<M>>>;
  status: ComputedRef<State["status"]>;
  /** The signed-in user; null while loading or signed out. */
  user: ComputedRef<User<M> | null>;
}

const key: InjectionKey<Auth<any>> = Symbol("authmount");

/**
 * Creates a plugin that provides a client to an application.
 *
 * @param initial the state that the server rendered with; hydration uses it, so the page does not flicker
 */
export function createAuth(client: AuthClient<any>, initial?: State<any>): Plugin {
  return {
    install(app: App) {
      const state = shallowRef(shown(client, initial));
      app.provide(key, {
        client,
        state,
        status: computed(() => state.value.status),
        user: computed(() => (signedIn(state.value) ? state.value.user : null)),
      });
      if (typeof document === "undefined") return; // a server render uses one fixed state
      const stop = client.subscribe(() => (state.value = shown(client, initial)));
      const unmount = app.unmount;
      app.unmount = () => {
        stop();
        unmount();
      };
    },
  };
}

/** Returns the state as refs, and the client. `M` is the type parameter of the client. */
export function useAuth<M extends Metadata = {}>(): Auth<M> {
  const auth = inject(key, null);
  if (!auth) throw new Error("useAuth needs app.use(createAuth(client)).");
  return auth;
}

/** The signed-in user; null while loading or signed out. */
export const useUser = <M extends Metadata = {}>(): ComputedRef<User<M> | null> => useAuth<M>().user;

/** Renders its slot while a user is signed in, also offline. */
export const SignedIn: FunctionalComponent = (_, { slots }) => (signedIn(useAuth().state.value) ? slots.default?.() : undefined);

/** Renders its slot while no user is signed in. Renders nothing while loading. */
export const SignedOut: FunctionalComponent = (_, { slots }) => (signedOut(useAuth().state.value) ? slots.default?.() : undefined);
