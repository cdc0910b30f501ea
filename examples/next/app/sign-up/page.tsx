"use client";
import { useActionState } from "react";
import { signUp } from "../actions";
import { Said } from "../said";

export default function Page() {
  const [form, action, busy] = useActionState(signUp, {});
  return (
    <>
      <h1>Sign up</h1>
      <form action={action} className="fields" id="sign-up">
        <Said form={form} />
        <label>
          Name <input name="name" autoComplete="name" />
        </label>
        <label>
          E-mail <input name="email" type="email" autoComplete="username" required />
        </label>
        <label>
          Password <input name="password" type="password" autoComplete="new-password" minLength={8} required />
        </label>
        <button disabled={busy}>Sign up</button>
      </form>
    </>
  );
}
