import { useAuth } from "authmount/react";
import * as passkeys from "authmount/passkey";
import { useCallback, useEffect, useState } from "react";
import { Form } from "./form";

/** A prompt that was closed is nothing to report. */
const quietly = async (call: Promise<{ error: (Error & { code: string }) | null }>) => {
  const { error } = await call;
  return { error: error && /^(passkey_cancelled|aborted|mfa_required)$/.test(error.code) ? null : error };
};

/** Whether the server and this browser have passkeys. */
function useOffered() {
  const { client } = useAuth();
  const [offered, offer] = useState(false);
  useEffect(() => {
    if (passkeys.isAvailable()) void client.settings().then(({ data }) => offer(!!data?.methods.passkey));
  }, [client]);
  return offered;
}

/** A button, and choices in the autofill of the address. */
export function PasskeySignIn() {
  const { client } = useAuth();
  const offered = useOffered();
  const [round, again] = useState(0);
  const [problem, report] = useState<string>();
  useEffect(() => {
    if (!offered) return;
    const abort = new AbortController();
    void quietly(passkeys.signIn(client, { conditional: true, signal: abort.signal })).then(({ error }) => report(error?.message));
    return () => abort.abort();
  }, [client, offered, round]);
  if (!offered) return null;
  return (
    <>
      {problem && <p role="alert">{problem}</p>}
      <Form
        id="passkey"
        button="Sign in with a passkey"
        send={async () => {
          const result = await quietly(passkeys.signIn(client));
          again((n) => n + 1); // the prompt has ended the autofill
          return result;
        }}
      >
        {null}
      </Form>
    </>
  );
}

/** A button for the second factor, if the user has a passkey for it. */
export function PasskeyFactor() {
  const { client, pending } = useAuth();
  if (!pending?.factors?.includes("passkey") || !passkeys.isAvailable()) return null;
  return (
    <Form id="factor-passkey" button="Use a passkey" send={() => quietly(passkeys.verify(client))}>
      {null}
    </Form>
  );
}

type List = NonNullable<Awaited<ReturnType<typeof passkeys.list>>["data"]>;

/** The account's passkeys. */
export function Passkeys() {
  const { client } = useAuth();
  const offered = useOffered();
  const [list, show] = useState<List>([]);
  const read = useCallback(async () => {
    const { data } = await passkeys.list(client);
    if (data) show(data);
  }, [client]);
  useEffect(() => {
    if (offered) void read();
  }, [offered, read]);
  if (!offered) return null;
  const changed = async (call: Promise<{ error: (Error & { code: string }) | null }>) => {
    const result = await quietly(call);
    await read();
    return result;
  };
  return (
    <>
      <h2>Passkeys</h2>
      <ul id="passkeys">
        {list.map(({ id, name, last_used_at }) => (
          <li key={id}>
            {name} ({last_used_at ? `used ${new Date(last_used_at).toLocaleDateString()}` : "not used yet"})
            <Form id={`remove-${id}`} button="Remove" send={() => changed(passkeys.remove(client, id))}>
              {null}
            </Form>
          </li>
        ))}
      </ul>
      <Form id="add-passkey" button="Add a passkey" send={() => changed(passkeys.register(client))}>
        {null}
      </Form>
    </>
  );
}
