import { createCsrfMiddleware, createMiddleware, createStart } from "@tanstack/react-start";
import { auth } from "./auth.server";

const csrf = createCsrfMiddleware({ filter: ({ handlerType }) => handlerType === "serverFn" });
const session = createMiddleware().server(({ next, ...input }) => auth.middleware(input, (context) => next({ context })));

export const startInstance = createStart(() => ({ requestMiddleware: [csrf, session] }));
