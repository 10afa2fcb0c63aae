// SPDX-License-Identifier: Apache-2.0

// Package source asks servers of the installation, such as Prometheus and Alertmanager, for JSON.
//
//	[Config] ──▶ [New] ──▶ [Client] ──Ask──▶ [Answer] ──Decode──▶ a value, or an [Error] that says why not
//
// The address, the authorities and the token belong to the installation. A request ends within [Timeout],
// an answer has at most [MaxAnswer] bytes, and the client follows no redirect.
package source
