import { fail, redirect, type RequestEvent } from "@sveltejs/kit";
import { localPath } from "authmount/sveltekit";

export const actions = {
  default: async ({ request, locals, url }: RequestEvent) => {
    const form = await request.formData();
    const { error } = await locals.auth.call("POST", "/login", { email: form.get("email"), password: form.get("password") });
    if (error) return fail(400, { problem: error.message });
    redirect(303, localPath(url.searchParams.get("return_to")));
  },
};
