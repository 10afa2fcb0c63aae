// SPDX-License-Identifier: Apache-2.0

// Package connectors lists the routers that carry splits out, and the capabilities of each. The router of a connector
// reads its capabilities here, and so does the page docs/reference/connectors.md, which [Table] makes: the page cannot
// promise more than the router checks.
package connectors
