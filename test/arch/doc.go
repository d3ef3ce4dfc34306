// Package arch holds nothing but the test that keeps the packages of this
// program in their order; see docs/architecture.md.
package arch
