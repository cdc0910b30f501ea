import { defineConfig } from "vite";
import vue from "@vitejs/plugin-vue";

const proxy = { "/auth/v1": process.env.AUTH_INTERNAL_URL };

export default defineConfig({ plugins: [vue()], preview: { proxy } });
