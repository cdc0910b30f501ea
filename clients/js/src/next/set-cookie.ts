import { pair, split } from "../server/cookies.js";

/** One cookie of a Set-Cookie line (RFC 6265, section 4.1). */
export interface SetCookie {
  name: string;
  value: string;
  /** Attributes, by their names in lower case; "" for those that have no value. */
  attributes: Record<string, string>;
}

/** Reads a Set-Cookie line: Next.js takes a cookie in parts. */
export function parseSetCookie(line: string): SetCookie {
  const [first, ...rest] = split(line);
  const [name, value = ""] = pair(first);
  return { name, value, attributes: Object.fromEntries(rest.map(pair).map(([k, v = ""]) => [k.toLowerCase(), v])) };
}
