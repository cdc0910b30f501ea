import type { Form } from "./actions";

/** What came of a form, told to screen readers, too. */
export function Said({ form }: { form: Form }) {
  if (form.error) return <p role="alert">{form.error}</p>;
  return <p role="status">{form.done}</p>;
}
