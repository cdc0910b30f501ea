export default defineEventHandler(async (event) => {
  const { user, status } = await auth(event).initialState();
  return { status, email: user?.email ?? null };
});
