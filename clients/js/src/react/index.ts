"use client";
/**
 * React 18 and later.
 *
 * ```tsx
 * const client = createClient("https://app.example.com");
 *
 * <AuthProvider client={client}>
 *   <SignedIn><Account /></SignedIn>
 *   <SignedOut><SignIn /></SignedOut>
 * </AuthProvider>
 * ```
 *
 * @module
 */
import { createContext, createElement, useContext, useMemo, useSyncExternalStore, type ReactElement, type ReactNode } from "react";
import { shown, signedIn, signedOut, unknown } from "../framework.js";
import type { AuthClient, State, User } from "../types.js";

interface Store {
  client: AuthClient;
  subscribe(changed: () => void): () => void;
  now(): State;
  rendered(): State;
}

const Context = createContext<Store | null>(null);

/** What {@link AuthProvider} takes. */
export interface AuthProviderProps {
  /** Of `createClient`, made once, outside of components. */
  client: AuthClient;
  /** What the server rendered with: hydration begins with it, and nothing flashes. Only the first one counts. */
  initial?: State | undefined;
  children?: ReactNode;
}

/** Makes a client known to the components below. */
export function AuthProvider({ client, initial, children }: AuthProviderProps): ReactElement {
  const store = useMemo<Store>(
    () => ({
      client,
      subscribe: (changed) => client.subscribe(changed),
      now: () => shown(client, initial),
      rendered: () => initial ?? unknown,
    }),
    [client],
  );
  return createElement(Context.Provider, { value: store }, children);
}

const useStore = (): [Store, State] => {
  const store = useContext(Context);
  if (!store) throw new Error("useAuth needs an <AuthProvider> above it.");
  return [store, useSyncExternalStore(store.subscribe, store.now, store.rendered)];
};

/** The state, and the client to change it with. Draws the component again on every change of it. */
export function useAuth(): State & { client: AuthClient } {
  const [{ client }, state] = useStore();
  return { ...state, client };
}

/** Who is signed in; null while it is not known, or nobody is. */
export function useUser(): User | null {
  const [, state] = useStore();
  return signedIn(state) ? state.user : null;
}

/** Draws its children while somebody is signed in, also offline. */
export function SignedIn({ children }: { children?: ReactNode }): ReactNode {
  return signedIn(useStore()[1]) ? children : null;
}

/** Draws its children while nobody is signed in, and not while that is yet to be found out. */
export function SignedOut({ children }: { children?: ReactNode }): ReactNode {
  return signedOut(useStore()[1]) ? children : null;
}
