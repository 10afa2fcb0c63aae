// SPDX-License-Identifier: Apache-2.0

// Package registry is a container registry for tests: in memory, without TLS and
// without passwords, on the addresses it is given. It stands in for the registry
// that somebody else's cluster pulls from.
package registry
