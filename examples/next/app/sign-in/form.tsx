"use client";
import { useActionState } from "react";
import { secondFactor, sendLink, signIn } from "../actions";
import { Said } from "../said";

export function SignIn({ returnTo, factor }: { returnTo: string; factor: boolean }) {
  const [password, withPassword, checking] = useActionState(signIn, { factor });
  const [code, withCode, verifying] = useActionState(secondFactor, {});
  const [link, byLink, sending] = useActionState(sendLink, {});
  if (password.factor)
    return (
      <form action={withCode} className="fields" id="factor">
        <Said form={code} />
        <input type="hidden" name="return_to" value={returnTo} />
        <label>
          Code of your app, or a recovery code
          <input name="code" autoComplete="one-time-code" required autoFocus />
        </label>
        <button disabled={verifying}>Go on</button>
      </form>
    );
  return (
    <>
      <form action={withPassword} className="fields" id="password">
        <Said form={password} />
        <input type="hidden" name="return_to" value={returnTo} />
        <label>
          E-mail <input name="email" type="email" autoComplete="username" required />
        </label>
        <label>
          Password <input name="password" type="password" autoComplete="current-password" required />
        </label>
        <button disabled={checking}>Sign in</button>
      </form>
      <form action={byLink} className="fields" id="link">
        <Said form={link} />
        <label>
          E-mail <input name="email" type="email" autoComplete="username" required />
        </label>
        <button disabled={sending}>Mail me a link</button>
      </form>
    </>
  );
}
