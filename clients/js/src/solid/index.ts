/**
 * Bindings for Solid.
 *
 * ```tsx
 * <AuthProvider client={createClient("https://app.example.com")}>
 *   <SignedIn><p>{useAuth().user()?.email}</p></SignedIn>
 * </AuthProvider>
 * ```
 *
 * @module
 */
import { createComponent, createContext, createMemo, createSignal, onCleanup, useContext, type Accessor, type JSX, type ParentProps } from "solid-js";
import { isServer } from "solid-js/web";
import { shown, signedIn, signedOut } from "../framework.js";
import type { AuthClient, Metadata, State, User } from "../types.js";

/** The result of {@link useAuth}. */
export interface Auth<M extends Metadata = {}> {
  client: AuthClient<M>;
  state: Accessor<State<M>>;
  status: Accessor<State["status"]>;
  /** The signed-in user; null while loading or signed out. */
  user: Accessor<User<M> | null>;
}

const Context = createContext<Auth<any>>();

/**
 * Creates signals of the client's state. They update until the owner (a component or a root) is disposed.
 *
 * @param initial the state that the server rendered with; hydration uses it, so the page does not flicker
 */
export function createAuth<M extends Metadata = {}>(client: AuthClient<M>, initial?: State<M>): Auth<M> {
  const [state, set] = createSignal(shown(client, initial));
  if (!isServer) onCleanup(client.subscribe(() => set(shown(client, initial))));
  return {
    client,
    state,
    status: createMemo(() => state().status),
    user: createMemo(() => (signedIn(state()) ? state().user : null)),
  };
}

/** Provides a client to its child components. */
export function AuthProvider(props: ParentProps<{ client: AuthClient<any>; initial?: State<any> }>): JSX.Element {
  return createComponent(Context.Provider, {
    value: createAuth(props.client, props.initial),
    get children() {
      return props.children;
    },
  });
}

/** Returns the state as signals, and the client. `M` is the type parameter of the client. */
export function useAuth<M extends Metadata = {}>(): Auth<M> {
  const auth = useContext(Context);
  if (!auth) throw new Error("useAuth needs an <AuthProvider> above it.");
  return auth;
}

/** The signed-in user; null while loading or signed out. */
export const useUser = <M extends Metadata = {}>(): Accessor<User<M> | null> => useAuth<M>().user;

const when = (holds: (state: State<any>) => boolean) => (props: ParentProps) => {
  const { state } = useAuth();
  const now = createMemo(() => holds(state()));
  return createMemo(() => (now() ? props.children : undefined)) as unknown as JSX.Element;
};

/** Renders its children while a user is signed in, also offline. */
export const SignedIn: (props: ParentProps) => JSX.Element = when(signedIn);

/** Renders its children while no user is signed in. Renders nothing while loading. */
export const SignedOut: (props: ParentProps) => JSX.Element = when(signedOut);
