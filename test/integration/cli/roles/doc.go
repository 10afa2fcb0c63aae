// SPDX-License-Identifier: Apache-2.0

// Package roles lets people with the chart's roles use the plugin on a real API
// server on which the chart's policies are in force: what a role is for works, what
// it is not for is refused in the server's words, and no caller acts in another's name. The same holds for the
// console of the plugin, and for the REST API of the role serve, with tokens.
package roles
