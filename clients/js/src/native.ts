/**
 * React Native and Expo: the refresh token, and nothing else of a session, in the storage of the device.
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
import type { AuthClient, Storage } from "./types.js";

/** What expo-secure-store exports, of that. */
export interface SecureStore {
  getItemAsync(key: string): Promise<string | null>;
  setItemAsync(key: string, value: string): Promise<unknown>;
  deleteItemAsync(key: string): Promise<unknown>;
}

/** What @react-native-async-storage/async-storage exports, of that. */
export interface AsyncStorage {
  getItem(key: string): Promise<string | null>;
  setItem(key: string, value: string): Promise<unknown>;
  removeItem(key: string): Promise<unknown>;
}

/** What is written of a value: of a session its refresh token alone, of anything else all. */
function reduced(value: string): string {
  try {
    const { refresh_token } = JSON.parse(value);
    return typeof refresh_token === "string" ? JSON.stringify({ refresh_token }) : value;
  } catch {
    return value;
  }
}

/**
 * A client's storage on one of the device. Access token and user stay in memory, and come anew with the first
 * refresh after a start. Prefer a store that the system protects, as expo-secure-store is.
 */
export function nativeStorage(store: SecureStore | AsyncStorage): Storage {
  const whole = new Map<string, string>(); // what this process wrote, by key
  const secure = "getItemAsync" in store;
  const safe = (key: string) => (secure ? key.replace(/[^\w.-]/g, "_") : key); // SecureStore takes no other characters
  return {
    async getItem(key) {
      const stored = await (secure ? store.getItemAsync(safe(key)) : store.getItem(key));
      const mine = whole.get(key);
      return mine !== undefined && stored === reduced(mine) ? mine : stored;
    },
    async setItem(key, value) {
      whole.set(key, value);
      await (secure ? store.setItemAsync(safe(key), reduced(value)) : store.setItem(key, reduced(value)));
    },
    async removeItem(key) {
      whole.delete(key);
      await (secure ? store.deleteItemAsync(safe(key)) : store.removeItem(key));
    },
  };
}

/** What React Native exports as AppState, of that. */
export interface AppStateLike {
  addEventListener(type: "change", listener: (state: string) => void): { remove(): void };
}

/**
 * Renews what expired while the app was in the background, whose timers stand still there. Nothing is asked of the
 * server while the token is good, or nobody is signed in.
 *
 * @returns what ends that
 */
export function followAppState(auth: AuthClient, appState: AppStateLike): () => void {
  const subscription = appState.addEventListener("change", (state) => {
    if (state === "active" && auth.state.user) void auth.getToken();
  });
  return () => subscription.remove();
}
