import { defineConfig } from "vite";
import { svelte } from "@sveltejs/vite-plugin-svelte";

const proxy = { "/auth/v1": process.env.AUTH_INTERNAL_URL };

export default defineConfig({ plugins: [svelte()], preview: { proxy } });
