/// <reference types="node" preserve="false" />
/**
 * Node: sessions in files, for command lines and other programs that run as one user.
 *
 * ```ts
 * import { homedir } from "node:os";
 * import { createClient } from "authmount";
 * import { fileStorage } from "authmount/node";
 *
 * const auth = createClient("https://app.example.com", "pk_your_key", { storage: fileStorage(`${homedir()}/.config/myapp/session`) });
 * ```
 *
 * @module
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, statSync } from "node:fs";
import { open, readFile, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { queue } from "../queue.js";
import type { Storage } from "../types.js";

// All storages of this process share it, so that two of the same directory keep the order of their calls.
const inOrder = queue();

/** Replaces a file, or creates it. A reader sees the old or the new text, also if the process ends meanwhile. */
async function replace(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomUUID()}`;
  try {
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync(); // otherwise a crash of the system could leave an empty file under the final name
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * Creates a storage of one file for each value in a directory, which it creates if necessary. Only the user of this
 * process can read them (mode 0600; on Windows, the directory's permissions decide). Several processes can share a
 * directory and its session. They may refresh it at the same time, but the session ends if a process uses a refresh token
 * that others replaced twice meanwhile, so do not call `refresh` in a loop. The files are not encrypted.
 *
 * @throws Error if the directory cannot be created, belongs to another user, or is writable for others, who could replace the session
 */
export function fileStorage(directory: string): Storage {
  const at = resolve(directory);
  mkdirSync(at, { recursive: true, mode: 0o700 });
  const { mode, uid } = statSync(at);
  if (process.geteuid && (uid !== process.geteuid() || mode & 0o022)) throw new Error(`${at} belongs to another user, or others can write to it`);
  // A hash, because keys have characters that file systems reserve, and some file systems ignore case.
  const fileOf = (key: string) => join(at, createHash("sha256").update(key).digest("hex"));
  const next = <T>(key: string, run: (file: string) => Promise<T>) => inOrder(fileOf(key), () => run(fileOf(key)));
  return {
    getItem: (key) =>
      next(key, (file) =>
        readFile(file, "utf8").catch((error) => {
          if (error.code === "ENOENT") return null;
          throw error;
        }),
      ),
    setItem: (key, value) => next(key, (file) => replace(file, value)),
    removeItem: (key) => next(key, (file) => rm(file, { force: true })),
  };
}
