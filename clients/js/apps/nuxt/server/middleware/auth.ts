export default defineEventHandler(auth.middleware);
