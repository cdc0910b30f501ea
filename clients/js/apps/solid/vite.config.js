import { defineConfig } from "vite";
import solid from "vite-plugin-solid";

const proxy = { "/auth/v1": process.env.AUTH_INTERNAL_URL };

export default defineConfig({ plugins: [solid()], preview: { proxy } });
