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

/** One cookie of a Set-Cookie line (RFC 6265, section 4.1). */
export interface SetCookie {
  name: string;
  value: string;
  /** Attributes, by their names in lower case; "" for those that have no value. */
  attributes: Record<string, string>;
}

const split = (text: string, by: string | RegExp = ";") => text.split(by).map((part) => part.trim()) as [string, ...string[]];
/** Name and value; only the first "=" is between them. */
const pair = (text: string) => split(text, /=(.*)/s);

/** Reads a Set-Cookie line, for frameworks that take a cookie in parts. */
export function parseSetCookie(line: string): SetCookie {
  const [first, ...rest] = split(line);
  const [name, value = ""] = pair(first);
  return { name, value, attributes: Object.fromEntries(rest.map(pair).map(([k, v = ""]) => [k.toLowerCase(), v])) };
}

/** Those of a browser's cookies whose names are given; a name that is there twice is left in twice. */
export function pickCookies(cookies: string, names: string[]): string[] {
  return split(cookies).filter((c) => names.includes(pair(c)[0]));
}

/**
 * The value of the only cookie of that name, or "". Of two none is believed: another host of
 * the site, or a path below, may have planted one of them.
 */
export function soleCookie(cookies: string, name: string): string {
  const found = pickCookies(cookies, [name]);
  return found.length === 1 ? pair(found[0]!)[1]! : "";
}

/** The Cookie header of a browser that has taken Set-Cookie lines. */
export function withCookies(cookies: string, lines: string[]): string {
  const set = lines.map(parseSetCookie);
  return [
    ...split(cookies).filter((c) => c && !set.some((s) => s.name === pair(c)[0])),
    ...set.filter((s) => s.value && s.attributes["max-age"] !== "0").map((s) => `${s.name}=${s.value}`),
  ].join("; ");
}

/**
 * Tells a request that changes something and that another site made a browser send. SameSite
 * cookies let through what a neighbouring subdomain sends, so the browser's own word counts
 * (Fetch Metadata), or else the Origin.
 */
export function crossSite(request: RequestLike, trusted: string[] = []): boolean {
  const origin = header(request, "origin");
  const site = header(request, "sec-fetch-site");
  if (/^(GET|HEAD|OPTIONS)$/i.test(request.method ?? "GET") || trusted.includes(origin)) return false;
  // "none" says that the visitor made the request by hand, which is no word on one that names an origin.
  if (site && !(site === "none" && origin)) return !/^(same-origin|none)$/.test(site);
  return !!origin && origin.split("//")[1] !== header(request, "host");
}
