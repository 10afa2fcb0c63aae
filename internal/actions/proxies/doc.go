// SPDX-License-Identifier: Apache-2.0

// Package proxies reads the proxies of all replicas of the discovery server, by way of the API server's
// forwarding of ports, so that the plugin and the REST API tell the same.
//
// A replica that does not answer is named ([Report.Silent]): a report without its proxies would say that they
// are not there.
package proxies
