export const openapi: Readonly<Record<string, unknown>> = {}
