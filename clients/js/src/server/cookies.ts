/** A request's headers: of the Fetch API, or of Node's `IncomingMessage`. */
export type HeadersLike = Headers | Record<string, string | string[] | undefined>;

/** The part of a request that this module reads. Requests of all server frameworks have it. */
export interface RequestLike {
  /** Default "GET". */
  method?: string | undefined;
  headers: HeadersLike;
}

/** Returns the value of a header, or "". */
export const header = ({ headers }: RequestLike, name: string): string =>
  String((typeof headers.get === "function" ? headers.get(name) : (headers as Record<string, unknown>)[name]) ?? "");

/** Splits a text and trims the parts. */
export const split = (text: string, by: string | RegExp = ";") => text.split(by).map((part) => part.trim()) as [string, ...string[]];
/** Splits a text at the first "=" into name and value. */
export const pair = (text: string) => split(text, /=(.*)/s);

/**
 * Returns the value of the only cookie with that name, or "". Two cookies with the same name are
 * both ignored, because another host of the site may have set one of them (cookie tossing).
 */
export function soleCookie(cookies: string, name: string): string {
  const found = split(cookies).map(pair).filter(([n]) => n === name);
  return found.length === 1 ? found[0]![1]! : "";
}

/** Returns the Cookie header of a browser after it stores Set-Cookie lines (RFC 6265, section 5.3). */
export function withCookies(cookies: string, lines: string[]): string {
  const set = lines.map((line) => split(line)[0]);
  return [
    ...split(cookies).filter((c) => c && !set.some((s) => pair(s)[0] === pair(c)[0])),
    ...set.filter((_, i) => !/; Max-Age=0/.test(lines[i]!)),
  ].join("; ");
}

/**
 * Reports whether a browser sent a state-changing request from another origin (CSRF). SameSite
 * cookies allow requests from sibling subdomains, so it checks the browser's Sec-Fetch-Site header
 * (Fetch Metadata), or else the Origin.
 */
export function crossSite(request: RequestLike): boolean {
  const origin = header(request, "origin");
  const site = header(request, "sec-fetch-site");
  if (/^(GET|HEAD|OPTIONS)$/.test(request.method ?? "GET")) return false;
  // "none" means that the user navigated directly; such a request has no Origin, so with one it is ignored.
  if (site && !(site === "none" && origin)) return !/^(same-origin|none)$/.test(site);
  return !!origin && origin.split("//")[1] !== header(request, "host");
}
