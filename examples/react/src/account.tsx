import { useAuth } from "authmount/react";
import { useEffect, useState } from "react";
import { Form } from "./form";
import { Passkeys } from "./passkeys";

export function Account() {
  const { user } = useAuth();
  return (
    <>
      <h1>Account</h1>
      <p>
        {user?.email} ({user?.email_verified ? "confirmed" : "not confirmed yet"})
      </p>
      <Sessions />
      <Passkeys />
      <Factor />
    </>
  );
}

type Sessions = NonNullable<Awaited<ReturnType<ReturnType<typeof useAuth>["client"]["sessions"]["list"]>>["data"]>;

function Sessions() {
  const { client } = useAuth();
  const [sessions, show] = useState<Sessions>([]);
  const [round, again] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    void client.sessions.list({ signal: abort.signal }).then(({ data }) => data && show(data));
    return () => abort.abort();
  }, [client, round]);
  return (
    <>
      <h2>Sessions</h2>
      <ul>
        {sessions.map((s) => (
          <li key={s.id}>
            {s.device}{" "}
            {s.current ? "(this one)" : <button onClick={() => client.sessions.end(s.id).then(() => again((n) => n + 1))}>End</button>}
          </li>
        ))}
      </ul>
    </>
  );
}

function Factor() {
  const { user, client } = useAuth();
  const [setup, begin] = useState<{ secret: string; qr_code: string }>();
  const [codes, keep] = useState<string[]>();
  return (
    <>
      <h2>Second factor</h2>
      {codes && (
        <ul id="codes" aria-label="Recovery codes, shown this once">
          {codes.map((code) => (
            <li key={code}>
              <code>{code}</code>
            </li>
          ))}
        </ul>
      )}
      {user?.mfa_enabled ? (
        <Form id="remove" button="Remove the second factor" send={(field) => client.mfa.disable({ totpCode: field("code") })}>
          <label>
            Code of your app <input name="code" autoComplete="one-time-code" required />
          </label>
        </Form>
      ) : setup ? (
        <Form
          id="enable"
          button="Switch on"
          send={async (field) => {
            const result = await client.mfa.enable({ totpCode: field("code") });
            if (result.data) {
              keep(result.data.recovery_codes);
              begin(undefined);
            }
            return result;
          }}
        >
          <img src={setup.qr_code} alt="QR code for your authenticator app" width={200} height={200} />
          <p>
            Or type in: <code id="secret">{setup.secret}</code>
          </p>
          <label>
            Code of your app <input name="code" autoComplete="one-time-code" required />
          </label>
        </Form>
      ) : (
        <Form
          id="enroll"
          button="Set up a second factor"
          send={async () => {
            const result = await client.mfa.enroll();
            if (result.data) begin(result.data);
            return result;
          }}
        >
          {null}
        </Form>
      )}
    </>
  );
}
