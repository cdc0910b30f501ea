"use client";
import { useActionState } from "react";
import { removeFactor, setUpFactor } from "../actions";
import { Said } from "../said";

/** Sets a second factor up, or takes it away. */
export function Factor({ on }: { on: boolean }) {
  const [setup, setUp, busy] = useActionState(setUpFactor, {});
  const [removal, remove, removing] = useActionState(removeFactor, {});
  if (setup.codes)
    return (
      <>
        <p role="status">It is on. Keep these recovery codes where your phone is not:</p>
        <ul id="codes">
          {setup.codes.map((code) => (
            <li key={code}>
              <code>{code}</code>
            </li>
          ))}
        </ul>
      </>
    );
  if (on)
    return (
      <form action={remove} className="fields" id="remove">
        <Said form={removal} />
        <label>
          Code of your app <input name="code" inputMode="numeric" autoComplete="one-time-code" required />
        </label>
        <button disabled={removing}>Remove the second factor</button>
      </form>
    );
  return (
    <form action={setUp} className="fields" id="set-up">
      <Said form={setup} />
      {setup.secret && (
        <>
          <img src={setup.qr} alt="QR code for your authenticator app" width={200} height={200} />
          <p>
            Or type in: <code id="secret">{setup.secret}</code>
          </p>
          <label>
            Code of your app <input name="code" inputMode="numeric" autoComplete="one-time-code" required />
          </label>
        </>
      )}
      <button disabled={busy}>{setup.secret ? "Switch on" : "Set up a second factor"}</button>
    </form>
  );
}
