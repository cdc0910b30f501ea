import { useState, type FormEvent, type ReactNode } from "react";

/** Sends a form's fields, once at a time, and shows what came of it. */
export function Form(props: { id: string; button: string; send: (field: (name: string) => string) => Promise<{ error: Error | null }>; done?: string; children: ReactNode }) {
  const [busy, setBusy] = useState(false);
  const [said, say] = useState<{ error?: string; done?: string }>({});
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    setBusy(true);
    const { error } = await props.send((name) => String(fields.get(name) ?? ""));
    setBusy(false);
    say(error ? { error: error.message } : { done: props.done });
  };
  return (
    <form id={props.id} className="fields" onSubmit={submit}>
      {said.error && <p role="alert">{said.error}</p>}
      {said.done && <p role="status">{said.done}</p>}
      {props.children}
      <button disabled={busy}>{props.button}</button>
    </form>
  );
}
