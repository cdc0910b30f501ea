import { pair, split } from "../server/cookies.js";

/** One cookie of a Set-Cookie line (RFC 6265, section 4.1). */
export interface SetCookie {
  name: string;
  value: string;
  /** Attributes by lower-case name; "" if an attribute has no value. */
  attributes: Record<string, string>;
}

/** Parses a Set-Cookie line, because Next.js sets a cookie by its parts. */
export function parseSetCookie(line: string): SetCookie {
  const [first, ...rest] = split(line);
  const [name, value = ""] = pair(first);
  return { name, value, attributes: Object.fromEntries(rest.map(pair).map(([k, v = ""]) => [k.toLowerCase(), v])) };
}
