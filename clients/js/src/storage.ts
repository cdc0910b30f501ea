import { attempt } from "./send.js";
import type { Options, Storage } from "./types.js";

/** Whether this is a page: only there are clients shared, and tokens kept by default. */
export const isBrowser = (): boolean => typeof document !== "undefined";

/** A storage that ends with the process. */
export function memory(): Storage {
  const values = new Map<string, string>();
  return {
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => values.set(key, value),
    removeItem: (key) => values.delete(key),
  };
}

/** The storage that was asked for, and whether other tabs see it. Where the browser refuses its own, memory. */
export function storageOf(asked: Options["storage"] = "local"): [storage: Storage, shared: boolean] {
  if (typeof asked === "object") return [asked, true];
  const found: Storage | undefined = attempt(() => isBrowser() && (globalThis as any)[`${asked}Storage`]); // the getter throws where storage is blocked
  return found ? [found, asked === "local"] : [memory(), false];
}
