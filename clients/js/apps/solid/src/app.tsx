import { SignedIn, SignedOut, useAuth } from "authmount/solid";
import { createSignal, For, Show } from "solid-js";

export function App() {
  const { status, user, client } = useAuth();
  const [said, say] = createSignal("");
  const [setup, begin] = createSignal<{ secret: string } | null>(null);
  const [codes, keep] = createSignal<string[]>([]);
  const send = <T,>(call: (field: (name: string) => string) => Promise<{ data: T | null; error: Error | null }>) => async (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    const { data, error } = await call((name) => String(fields.get(name) ?? ""));
    say(error?.message ?? "done");
    return data;
  };
  return (
    <>
      <p id="status">{status()}</p>
      <p id="said">{said()}</p>
      <SignedIn>
        <header>{user()?.email} <button onClick={() => client.signOut()}>Sign out</button></header>
        <p>{user()?.email_verified ? "(confirmed)" : "(not confirmed yet)"}</p>
        <Show
          when={setup()}
          fallback={<form id="enroll" onSubmit={async (e) => begin((await send(() => client.mfa.enroll())(e)) ?? null)}><button>Set up</button></form>}
        >
          <form
            id="enable"
            onSubmit={async (e) => {
              keep((await send((field) => client.mfa.enable({ totpCode: field("code") }))(e))?.recovery_codes ?? []);
              begin(null);
            }}
          >
            <code id="secret">{setup()?.secret}</code><input name="code" /><button>Switch on</button>
          </form>
        </Show>
        <ul id="codes"><For each={codes()}>{(code) => <li>{code}</li>}</For></ul>
      </SignedIn>
      <SignedOut>
        <Show
          when={status() === "mfa"}
          fallback={
            <>
              <form id="sign-in" onSubmit={send((field) => client.signInWithPassword({ email: field("email"), password: field("password") }))}>
                <input name="email" /><input name="password" type="password" /><button>Sign in</button>
              </form>
              <form id="link" onSubmit={send((field) => client.signInWithOtp({ email: field("email") }))}><input name="email" /><button>Mail a link</button></form>
              <form id="sign-up" onSubmit={send((field) => client.signUp({ email: field("email"), password: field("password") }))}>
                <input name="email" /><input name="password" type="password" /><button>Sign up</button>
              </form>
            </>
          }
        >
          <form id="factor" onSubmit={send((field) => client.mfa.verify({ totpCode: field("code") }))}><input name="code" /><button>Go on</button></form>
        </Show>
      </SignedOut>
    </>
  );
}
