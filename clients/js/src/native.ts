/**
 * React Native and Expo: stores only a session's refresh token in the device's storage.
 *
 * ```ts
 * import * as SecureStore from "expo-secure-store";
 * import { AppState } from "react-native";
 * import { createClient } from "authmount";
 * import { followAppState, nativeStorage } from "authmount/native";
 *
 * const auth = createClient("https://app.example.com", "pk_your_key", { storage: nativeStorage(SecureStore), redirectOrigins: ["myapp:"] });
 * followAppState(auth, AppState);
 * ```
 *
 * @module
 */
import { queue } from "./queue.js";
import type { AuthClient, Storage } from "./types.js";

/** The part of expo-secure-store that {@link nativeStorage} uses. */
export interface SecureStore {
  getItemAsync(key: string): Promise<string | null>;
  setItemAsync(key: string, value: string): Promise<unknown>;
  deleteItemAsync(key: string): Promise<unknown>;
}

/** The part of @react-native-async-storage/async-storage that {@link nativeStorage} uses. */
export interface AsyncStorage {
  getItem(key: string): Promise<string | null>;
  setItem(key: string, value: string): Promise<unknown>;
  removeItem(key: string): Promise<unknown>;
}

/** Returns the text to store: only the refresh token of a session, other values unchanged. */
function reduced(value: string): string {
  try {
    const { refresh_token } = JSON.parse(value);
    return typeof refresh_token === "string" ? JSON.stringify({ refresh_token }) : value;
  } catch {
    return value;
  }
}

/**
 * Adapts a device's storage for `createClient`. The access token and the user stay in memory; after a restart the first
 * refresh loads them again. Prefer a storage that the operating system encrypts, such as expo-secure-store.
 */
export function nativeStorage(store: SecureStore | AsyncStorage): Storage {
  const whole = new Map<string, string>(); // the full values that this process wrote, by key
  const secure = "getItemAsync" in store;
  const safe = (key: string) => (secure ? key.replace(/[^\w.-]/g, "_") : key); // SecureStore allows no other characters
  const next = queue(); // a device's storage may complete writes in another order than they were started
  return {
    getItem: (key) =>
      next(key, async () => {
        const stored = await (secure ? store.getItemAsync(safe(key)) : store.getItem(key));
        const mine = whole.get(key);
        return mine !== undefined && stored === reduced(mine) ? mine : stored;
      }),
    setItem: (key, value) =>
      next(key, () => {
        whole.set(key, value);
        return secure ? store.setItemAsync(safe(key), reduced(value)) : store.setItem(key, reduced(value));
      }),
    removeItem: (key) =>
      next(key, () => {
        whole.delete(key);
        return secure ? store.deleteItemAsync(safe(key)) : store.removeItem(key);
      }),
  };
}

/** The part of React Native's AppState that {@link followAppState} uses. */
export interface AppStateLike {
  addEventListener(type: "change", listener: (state: string) => void): { remove(): void };
}

/**
 * Refreshes an expired access token when the app returns to the foreground, because timers stop in the background. It
 * sends no request if the token is valid or no user is signed in.
 *
 * @returns a function that removes the listener
 */
export function followAppState(auth: AuthClient<any>, appState: AppStateLike): () => void {
  const subscription = appState.addEventListener("change", (state) => {
    if (state === "active" && auth.state.user) void auth.getToken();
  });
  return () => subscription.remove();
}
