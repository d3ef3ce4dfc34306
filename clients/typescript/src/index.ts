export * from "./api.js";
export { ModelgateError, userAgent } from "./transport.js";
export type { ErrorType, Options } from "./transport.js";
