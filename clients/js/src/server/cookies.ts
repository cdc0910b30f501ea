/** Where a request's headers are: of the Fetch API, or of Node's `IncomingMessage`. */
export type HeadersLike = Headers | Record<string, string | string[] | undefined>;

/** A request as any server framework has it. */
export interface RequestLike {
  /** "GET" where absent. */
  method?: string | undefined;
  headers: HeadersLike;
}

/** The value of a header, or "". */
export const header = ({ headers }: RequestLike, name: string): string =>
  String((typeof headers.get === "function" ? headers.get(name) : (headers as Record<string, unknown>)[name]) ?? "");

/** The parts of a text, without the space around them. */
export const split = (text: string, by: string | RegExp = ";") => text.split(by).map((part) => part.trim()) as [string, ...string[]];
/** Name and value; only the first "=" is between them. */
export const pair = (text: string) => split(text, /=(.*)/s);

/**
 * The value of the only cookie of that name, or "". Of two none is believed: another host of
 * the site, or a path below, may have planted one of them.
 */
export function soleCookie(cookies: string, name: string): string {
  const found = split(cookies).map(pair).filter(([n]) => n === name);
  return found.length === 1 ? found[0]![1]! : "";
}

/** The Cookie header of a browser that has taken Set-Cookie lines (RFC 6265, section 5.3). */
export function withCookies(cookies: string, lines: string[]): string {
  const set = lines.map((line) => split(line)[0]);
  return [
    ...split(cookies).filter((c) => c && !set.some((s) => pair(s)[0] === pair(c)[0])),
    ...set.filter((_, i) => !/; Max-Age=0/.test(lines[i]!)),
  ].join("; ");
}

/**
 * Tells a request that changes something and that another site made a browser send. SameSite
 * cookies let through what a neighbouring subdomain sends, so the browser's own word counts
 * (Fetch Metadata), or else the Origin.
 */
export function crossSite(request: RequestLike): boolean {
  const origin = header(request, "origin");
  const site = header(request, "sec-fetch-site");
  if (/^(GET|HEAD|OPTIONS)$/.test(request.method ?? "GET")) return false;
  // "none" says that the visitor made the request by hand, which is no word on one that names an origin.
  if (site && !(site === "none" && origin)) return !/^(same-origin|none)$/.test(site);
  return !!origin && origin.split("//")[1] !== header(request, "host");
}
