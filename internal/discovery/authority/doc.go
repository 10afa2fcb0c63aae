// SPDX-License-Identifier: Apache-2.0

// Package authority brings the authorities of the discovery server to where proxies
// are: a ConfigMap of one name in every namespace that has them or wants them.
//
// The one in Plumbline's own namespace is the original, which internal/certs keeps;
// all others are copies. [Decide] says what becomes of the one in a namespace, and
// [Reconciler] carries it out for one namespace at a time. Only the leader does.
//
// A copy is known by its label. A ConfigMap of that name without it is somebody
// else's: it is reported and never touched.
package authority
