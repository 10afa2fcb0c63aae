// SPDX-License-Identifier: Apache-2.0

// Package sendonce makes the requests of loads that count lost requests. The transport of net/http sends a request
// again when its connection ends, if it can. A load that was sent twice hides a loss.
package sendonce
