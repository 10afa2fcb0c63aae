// SPDX-License-Identifier: Apache-2.0

// Package evidencehttp lets signed records be read where they cannot be reached
// otherwise: from a volume that only the executor's pod has mounted.
//
// [Handler] serves a store read-only; [Client] is the store at the other end, by
// way of the API server's proxy to the pod. Neither needs to be believed: who
// reads verifies every record, and compares how far the chains go with the heads
// in etcd.
//
//	GET /evidence/                  the names, one in a line; ?chain= those of one chain
//	GET /evidence/<chain>/<n>.json  one record
//	GET /evidence/<chain>/sha256-<digest>.json  one body that records name
package evidencehttp
