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
export function storageOf(asked: Options["storage"]): [storage: Storage, shared: boolean] {
  if (asked && typeof asked === "object") return [asked, true];
  if (isBrowser() && asked !== "memory") {
    try {
      const found = asked === "session" ? sessionStorage : localStorage; // the getter throws where storage is blocked
      if (found) return [found, asked !== "session"];
    } catch {
      // memory, below
    }
  }
  return [memory(), false];
}
