// SPDX-License-Identifier: Apache-2.0

// Package servetest has a world in memory for the tests of the role: users with tokens and rights, a cache, and an API server
// that notes the requests of callers.
package servetest
