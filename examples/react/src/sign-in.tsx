import { useAuth } from "authmount/react";
import { Form } from "./form";
import { PasskeyFactor, PasskeySignIn } from "./passkeys";

const Address = ({ complete = "username" }) => (
  <label>
    E-mail <input name="email" type="email" autoComplete={complete} required />
  </label>
);

/** Whatever is to be done until somebody is signed in. */
export function SignIn() {
  const { status, client } = useAuth();
  if (status === "mfa")
    return (
      <>
        <PasskeyFactor />
        <Form
          id="factor"
          button="Go on"
          send={(field) => {
            const code = field("code").replace(/\s/g, "");
            return client.mfa.verify(/^\d{6}$/.test(code) ? { totpCode: code } : { recoveryCode: code });
          }}
        >
          <label>
            Code of your app, or a recovery code <input name="code" autoComplete="one-time-code" autoFocus required />
          </label>
        </Form>
      </>
    );
  if (status === "confirm") return <p role="status">Look into your mail: there is a link to confirm your address.</p>;
  return (
    <>
      <h1>Sign in</h1>
      <Form id="sign-in" button="Sign in" send={async (field) => {
        const { error } = await client.signInWithPassword({ email: field("email"), password: field("password") });
        return { error: error?.code === "mfa_required" ? null : error };
      }}>
        <Address complete="username webauthn" />
        <label>
          Password <input name="password" type="password" autoComplete="current-password" required />
        </label>
      </Form>
      <PasskeySignIn />
      <Form id="link" button="Mail me a link" done="Look into your mail, and open the link in this browser." send={(field) => client.signInWithOtp({ email: field("email") })}>
        <Address />
      </Form>
      <h2>Sign up</h2>
      <Form id="sign-up" button="Sign up" send={(field) => client.signUp({ email: field("email"), password: field("password") })}>
        <Address />
        <label>
          Password <input name="password" type="password" autoComplete="new-password" minLength={8} required />
        </label>
      </Form>
    </>
  );
}
