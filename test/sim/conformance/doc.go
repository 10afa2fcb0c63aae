// SPDX-License-Identifier: Apache-2.0

// Package conformance is one table of requests to an API server and of what comes
// of them: code, reason, causes, and what is stored after. The simulated server is
// held against it by the unit tests, and a real kube-apiserver by those with the
// build tag integration, so that a simulation rests on what really happens.
//
// The table has every precondition that a write can carry, on a built-in kind and
// on a custom one, on the object, its /status and its /scale, by PUT, POST, JSON
// patch, merge patch and DELETE, stored and as a dry run. It has no row for
// server-side apply, which neither the simulated server nor the executor knows,
// nor for watches. The simulated server keeps no managedFields: in a real one, a
// write that changes nothing but who owns a field moves the resourceVersion too.
package conformance
