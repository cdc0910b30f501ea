export default defineEventHandler(async (event) => {
  const { sub } = await auth(event).requireUser();
  return { sub };
});
