import { pair, split } from "../server/cookies.js";

/** A cookie as frameworks set it, from a Set-Cookie line of the server (RFC 6265, section 4.1). */
export interface SessionCookie {
  name: string;
  value: string;
  path: "/";
  httpOnly: true;
  secure: boolean;
  sameSite: "lax";
  maxAge?: number;
}

/** Parses a Set-Cookie line. Whatever the line says, no script can read the cookie and no other site sends it. */
export function parseSetCookie(line: string): SessionCookie {
  const [first, ...rest] = split(line);
  const [name, value = ""] = pair(first);
  const a = Object.fromEntries(rest.map(pair).map(([k, v = ""]) => [k.toLowerCase(), v]));
  return { name, value, path: "/", httpOnly: true, secure: "secure" in a, sameSite: "lax", ...("max-age" in a && { maxAge: Number(a["max-age"]) }) };
}

/** Returns earlier Set-Cookie lines and later ones, with one line per cookie: the last. */
export function merge(lines: string[], later: string[]): string[] {
  const name = (line: string) => pair(line)[0];
  return [...lines.filter((line) => !later.some((l) => name(l) === name(line))), ...later];
}
