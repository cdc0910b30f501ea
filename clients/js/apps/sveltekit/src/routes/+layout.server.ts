export const load = async ({ locals, url }: { locals: App.Locals; url: URL }) => {
  void url.pathname; // loads again on each page
  const { user, status } = await locals.auth.initialState();
  return { status, email: user?.email ?? null };
};
