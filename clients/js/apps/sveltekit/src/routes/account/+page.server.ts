import { redirect, type RequestEvent } from "@sveltejs/kit";

export const load = async ({ locals }: { locals: App.Locals }) => {
  const { sub } = await locals.auth.requireUser();
  return { sub };
};

export const actions = {
  signOut: async ({ locals }: RequestEvent) => {
    await locals.auth.call("POST", "/logout");
    redirect(303, "/");
  },
};
