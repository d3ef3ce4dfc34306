// Package usage reads what a provider's reply states about its use: tokens,
// units and costs, out of JSON bodies and server-sent events, while the bytes
// pass on their way to the client.
package usage
