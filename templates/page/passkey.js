// The passkeys of the pages. A form with data-passkey is one ceremony of WebAuthn: "get",
// "create", or "upgrade", which is "create" that a browser may finish by itself. A button with
// data-passkey="get" is one beside another way to submit its form. The form's
// page answers a post with the field "options" with the options of the ceremony, and any other
// post with the next page. Without this script, or without passkeys in the browser, everything
// with data-passkey stays hidden.
"use strict";
(() => {
  const passkeys = window.PublicKeyCredential;
  const signals = document.currentScript.dataset.signals;
  if (!passkeys?.parseRequestOptionsFromJSON || !passkeys.parseCreationOptionsFromJSON) return;

  const renewal = 4 * 60 * 1000; // options are valid for five minutes
  const conditional = "conditional"; // a ceremony that waits, without a dialog of the browser
  let running; // the AbortController of the latest ceremony

  // begin returns the options of a form's ceremony, or nothing if its page refuses.
  async function begin(form, mediation, signal) {
    const body = new URLSearchParams(new FormData(form));
    body.set("options", mediation ?? "");
    const answer = await fetch(form.action, { method: "POST", body, signal });
    if (!answer.headers.get("Content-Type")?.startsWith("application/json")) return undefined;
    return (await answer.json()).public_key;
  }

  // post posts a form with the browser's credential. Without one, its page says what is wrong.
  function post(form, credential, failure) {
    form.elements.credential.value = credential ? JSON.stringify(credential) : "";
    form.elements.failure.value = failure ?? "";
    form.submit();
  }

  // perform performs a form's ceremony in place of a running one. It returns whether the
  // ceremony ended without a result and no other replaced it.
  async function perform(form, mediation) {
    running?.abort();
    const own = new AbortController();
    running = own;
    const timer = mediation && setTimeout(() => own.abort(), renewal);
    const keep = form.elements.remember;
    if (keep) keep.value = document.querySelector("[type=checkbox][name=remember]")?.checked === false ? "" : "1";
    try {
      const json = await begin(form, mediation, own.signal);
      const options = { mediation, signal: own.signal };
      if (!json) {
        if (!mediation) post(form, null, "refused");
      } else if ((form.dataset.passkey ?? "get") === "get") {
        options.publicKey = passkeys.parseRequestOptionsFromJSON(json);
        post(form, await navigator.credentials.get(options));
      } else {
        options.publicKey = passkeys.parseCreationOptionsFromJSON(json);
        post(form, await navigator.credentials.create(options));
      }
      return false;
    } catch (error) {
      if (running !== own) return false;
      if (mediation) return own.signal.aborted;
      if (error.name !== "NotAllowedError") post(form, null, error.name); // else the user cancelled
      return true;
    } finally {
      clearTimeout(timer);
    }
  }

  // offer lets the browser offer passkeys in the field that has "webauthn", until the page is
  // left or a button is pressed.
  async function offer() {
    const form = document.querySelector("form[data-passkey=get]");
    if (!form || !document.querySelector("input[autocomplete~=webauthn]")) return;
    if (!(await passkeys.isConditionalMediationAvailable?.())) return;
    while (await perform(form, conditional));
  }

  // upgrade lets the browser create a passkey by itself, where it can.
  async function upgrade() {
    const form = document.querySelector("form[data-passkey=upgrade]");
    if (form && (await passkeys.getClientCapabilities?.())?.conditionalCreate && !running) await perform(form, conditional);
  }

  for (const element of document.querySelectorAll("[data-passkey]")) {
    element.hidden = false;
    const form = element.form ?? element;
    form.addEventListener("submit", async (event) => {
      if (form !== element && event.submitter !== element) return;
      event.preventDefault();
      if (await perform(form)) offer();
    });
  }
  for (const field of document.querySelectorAll("input[name=passkeys]")) field.value = "1";
  for (const [method, about] of Object.entries(JSON.parse(signals || "{}"))) passkeys[method]?.(about).catch(() => {});
  offer();
  upgrade();
})();
