/**
 * Solid.
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
import type { AuthClient, State, User } from "../types.js";

/** What {@link useAuth} returns. */
export interface Auth {
  client: AuthClient;
  state: Accessor<State>;
  status: Accessor<State["status"]>;
  /** Who is signed in; null while it is not known, or nobody is. */
  user: Accessor<User | null>;
}

const Context = createContext<Auth>();

/**
 * The state of a client as signals, until the owner (a component, or a root) is disposed of.
 *
 * @param initial what the server rendered with: hydration begins with it, and nothing flashes
 */
export function createAuth(client: AuthClient, initial?: State): Auth {
  const [state, set] = createSignal(shown(client, initial));
  if (!isServer) onCleanup(client.subscribe(() => set(shown(client, initial))));
  return {
    client,
    state,
    status: createMemo(() => state().status),
    user: createMemo(() => (signedIn(state()) ? state().user : null)),
  };
}

/** Makes a client known to the components below. */
export function AuthProvider(props: ParentProps<{ client: AuthClient; initial?: State }>): JSX.Element {
  return createComponent(Context.Provider, {
    value: createAuth(props.client, props.initial),
    get children() {
      return props.children;
    },
  });
}

/** The state as signals, and the client to change it with. */
export function useAuth(): Auth {
  const auth = useContext(Context);
  if (!auth) throw new Error("useAuth needs an <AuthProvider> above it.");
  return auth;
}

/** Who is signed in; null while it is not known, or nobody is. */
export const useUser = (): Accessor<User | null> => useAuth().user;

const when = (holds: (state: State) => boolean) => (props: ParentProps) => {
  const { state } = useAuth();
  const now = createMemo(() => holds(state()));
  return createMemo(() => (now() ? props.children : undefined)) as unknown as JSX.Element;
};

/** Draws its children while somebody is signed in, also offline. */
export const SignedIn: (props: ParentProps) => JSX.Element = when(signedIn);

/** Draws its children while nobody is signed in, and not while that is yet to be found out. */
export const SignedOut: (props: ParentProps) => JSX.Element = when(signedOut);
