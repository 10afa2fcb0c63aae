// SPDX-License-Identifier: Apache-2.0

// Package hash is "kubectl plumbline hash": it prints the canonical hash of documents, and of
// live objects.
//
// Documents need no cluster.
package hash
