import { fail, redirect, type RequestEvent } from "@sveltejs/kit";

export const actions = {
  default: async ({ request, locals }: RequestEvent) => {
    const form = await request.formData();
    const { error } = await locals.auth.call("POST", "/signup", { email: form.get("email"), password: form.get("password") });
    if (error) return fail(400, { problem: error.message });
    redirect(303, "/account");
  },
};
