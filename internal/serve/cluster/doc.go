// SPDX-License-Identifier: Apache-2.0

// Package cluster is the API server as the caller of a request may read and write it: the [httpapi.Shared] cluster of the
// door in the cluster. The caller is that of the context ([callers.Of]).
//
//	reading request ──▶ kinds of Plumbline ──▶ shared cache, filtered by the rights of the caller
//	               └──▶ other kinds ─────────▶ API server, with the caller's token
//	writing request ──▶ all kinds ───────────▶ API server, with the caller's token
//
// A request that writes reads with the caller's token too: its reads have to see its own writes, at any replica. What
// is sent with the token of a caller has nothing of the server's identity.
//
// Events are told of all objects of the shared cache, once for all callers ([Cluster.Follow]), and each stream asks which of them its
// caller may watch ([Cluster.Hearer]).
//
// Lists of all namespaces have the objects of the namespaces that the caller may read. An id of an object that the
// caller may not read is answered as one of no object.
package cluster
