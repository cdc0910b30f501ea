"use client";
/**
 * Bindings for React 18 and later.
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
import type { AuthClient, Metadata, State, User } from "../types.js";

interface Store {
  client: AuthClient<any>;
  subscribe(changed: () => void): () => void;
  now(): State<any>;
  rendered(): State<any>;
}

const Context = createContext<Store | null>(null);

/** Props of {@link AuthProvider}. */
export interface AuthProviderProps {
  /** The client. Create it once with `createClient`, outside of components. */
  client: AuthClient<any>;
  /** The state that the server rendered with; hydration uses it, so the page does not flicker. Later changes are ignored. */
  initial?: State<any> | undefined;
  children?: ReactNode;
}

/** Provides a client to its child components. */
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

const useStore = (): [Store, State<any>] => {
  const store = useContext(Context);
  if (!store) throw new Error("useAuth needs an <AuthProvider> above it.");
  return [store, useSyncExternalStore(store.subscribe, store.now, store.rendered)];
};

/** Returns the state and the client. The component re-renders after every change of the state. `M` is the type parameter of the client. */
export function useAuth<M extends Metadata = {}>(): State<M> & { client: AuthClient<M> } {
  const [{ client }, state] = useStore();
  return { ...state, client };
}

/** Returns the signed-in user; null while loading or signed out. */
export function useUser<M extends Metadata = {}>(): User<M> | null {
  const [, state] = useStore();
  return signedIn(state) ? state.user : null;
}

/** Renders its children while a user is signed in, also offline. */
export function SignedIn({ children }: { children?: ReactNode }): ReactNode {
  return signedIn(useStore()[1]) ? children : null;
}

/** Renders its children while no user is signed in. Renders nothing while loading. */
export function SignedOut({ children }: { children?: ReactNode }): ReactNode {
  return signedOut(useStore()[1]) ? children : null;
}
