// What is nicer with scripts. Everything works without: forms are pages of their own.
const prefix = document.body.dataset.prefix ?? '';
let main = /** @type {HTMLElement} */ (document.querySelector('main'));

/** Pages come from here alone, and are parsed into a document in which nothing runs. */
const policy = /** @type {any} */ (window).trustedTypes?.createPolicy('dashboard', { createHTML: (/** @type {string} */ s) => s });

/** @param {string} text */
const parse = (text) => new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, 'text/html');

/** @param {Date} at */
function ago(at) {
  const seconds = (at.getTime() - Date.now()) / 1000;
  const words = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: 'auto' });
  /** @type {[Intl.RelativeTimeFormatUnit, number][]} */
  const units = [['year', 31557600], ['month', 2629800], ['day', 86400], ['hour', 3600], ['minute', 60]];
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return words.format(Math.round(seconds / size), unit);
  }
  return words.format(Math.round(seconds), 'second');
}

/** @param {ParentNode} root */
function dress(root) {
  for (const t of root.querySelectorAll('time')) {
    const at = new Date(t.dateTime);
    if (!Number.isNaN(at.getTime()) && at.getFullYear() < 9000) t.textContent = ago(at);
  }
  for (const pre of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll('pre[data-copy]'))) {
    if (pre.nextElementSibling?.matches('.copy')) continue;
    const b = document.createElement('button');
    b.type = 'button';
    b.className = 'other copy';
    b.textContent = pre.dataset.copy ?? '';
    b.addEventListener('click', () => navigator.clipboard?.writeText(pre.textContent ?? '').then(() => { b.textContent += ' ✓'; }));
    pre.after(b);
  }
}

// Forms of one operation open as a dialog.
const dialog = document.createElement('dialog');
document.body.append(dialog);

/** @param {Document} page @param {string} at */
function fill(page, at) {
  const from = page.querySelector('main');
  if (!from) { location.assign(at); return; }
  dialog.replaceChildren(...Array.from(from.childNodes).map((n) => document.importNode(n, true)));
  const title = dialog.querySelector('h1');
  if (title) { title.id = 'dialog-title'; dialog.setAttribute('aria-labelledby', title.id); }
  dress(dialog);
  if (!dialog.open) dialog.showModal();
  /** @type {HTMLElement | null} */ (dialog.querySelector('[aria-invalid], .field input, .field select, .field textarea'))?.focus();
}

/** A form is what a page is that has one to fill in. @param {Document} page */
const isForm = (page) => page.querySelector('main form.entry[method=post]') !== null && page.querySelector('main textarea[rows="6"]') === null;

document.addEventListener('click', async (e) => {
  const a = e.target instanceof Element ? e.target.closest('a.button') : null;
  if (!(a instanceof HTMLAnchorElement) || a.origin !== location.origin || e.ctrlKey || e.metaKey || e.shiftKey || e.button !== 0) return;
  if (dialog.contains(a)) {
    if (a.pathname === location.pathname || a.previousElementSibling) { e.preventDefault(); dialog.close(); if (a.search !== location.search && a.pathname === location.pathname) location.assign(a.href); }
    return;
  }
  if (!/\/(new|edit|address|ban|unban|unlock|delete|anonymize|password|remove|unlink|link|send|impersonate|sign-out|end|revoke|resend|withdraw|retry|rotate|test-mail|test-sms)$/.test(a.pathname)) return;
  e.preventDefault();
  const r = await fetch(a.href, { headers: { Accept: 'text/html' } });
  const page = parse(await r.text());
  if (r.redirected || !isForm(page)) { location.assign(a.href); return; }
  fill(page, a.href);
});

dialog.addEventListener('submit', async (e) => {
  const f = e.target;
  if (!(f instanceof HTMLFormElement) || f.method !== 'post' || new URL(f.action).pathname === prefix + '/sign-out') return;
  e.preventDefault();
  const button = /** @type {HTMLButtonElement | null} */ (f.querySelector('[type=submit]'));
  if (button) button.disabled = true;
  const r = await fetch(f.action, { method: 'POST', body: new URLSearchParams(/** @type {any} */ (new FormData(f))) });
  const page = parse(await r.text());
  if (r.redirected) { show(page, r.url); return; }
  fill(page, f.action);
});

/** What comes of a form is shown in place: it says what was done, and says so once. @param {Document} page @param {string} at */
function show(page, at) {
  const next = page.querySelector('main');
  if (!next || !page.querySelector('nav.side')) { location.assign(at); return; }
  dialog.close();
  const n = /** @type {HTMLElement} */ (document.importNode(next, true));
  main.replaceWith(n);
  main = n;
  for (const old of document.querySelectorAll('aside.acting')) old.remove(); // an impersonation may have ended
  document.querySelector('.frame')?.before(...Array.from(page.querySelectorAll('aside.acting')).map((a) => document.importNode(a, true)));
  document.title = page.title;
  history.pushState(null, '', at);
  dress(main);
  main.focus();
}
addEventListener('popstate', () => location.reload());

// Selected rows are counted.
document.addEventListener('change', (e) => {
  const f = e.target instanceof Element ? e.target.closest('form.select') : null;
  const count = f?.querySelector('.count');
  if (f && count) count.textContent = String(f.querySelectorAll('[name=ids]:checked').length || '');
});

// Keys of the keyboard.
let go = 0;
document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || (e.target instanceof Element && e.target.closest('input, select, textarea, dialog'))) return;
  const help = /** @type {HTMLDialogElement | null} */ (document.getElementById('help'));
  if (e.key === '?') { help?.showModal(); return; }
  if (e.key === '/') {
    const q = /** @type {HTMLInputElement | null} */ (document.querySelector('input[type=search], .filters input'));
    e.preventDefault();
    if (q) q.focus(); else location.assign(prefix + '/users');
    return;
  }
  if (e.key === 'g') { go = Date.now(); return; }
  /** @type {Record<string, string>} */
  const to = { o: '/', u: '/users', s: '/sessions', r: '/roles', a: '/audit', i: '/invitations', m: '/messages', k: '/keys' };
  if (Date.now() - go < 1500 && to[e.key]) location.assign(prefix + to[e.key]);
  go = 0;
});

// Lists that are to be kept up to date are read anew, while somebody looks and reads on
// top of them. Who has touched nothing for a quarter of an hour may have left: reading on
// would keep their session from ending of idleness.
const every = Number(main?.dataset.live);
if (every) {
  let touched = Date.now();
  for (const way of ['pointermove', 'pointerdown', 'keydown', 'scroll']) addEventListener(way, () => { touched = Date.now(); }, { passive: true });
  setInterval(async () => {
    if (Date.now() - touched > 900_000 || document.hidden || dialog.open || document.activeElement?.matches('input, select, textarea')) return;
    const r = await fetch(location.href, { headers: { Accept: 'text/html' } });
    if (!r.ok || r.redirected) return;
    const page = parse(await r.text());
    const now = Array.from(main.querySelectorAll('.block'));
    const then = Array.from(page.querySelectorAll('main .block'));
    if (now.length !== then.length) return;
    then.forEach((b, i) => { const n = document.importNode(b, true); dress(n); if (n.textContent !== now[i].textContent) now[i].replaceWith(n); });
  }, every * 1000);
}

dress(document);
