// SPDX-License-Identifier: Apache-2.0

// Package deny holds the tests of the mode Deny on a real API server.
//
// Nothing of Plumbline runs here but what the chart puts into the API server:
// the policies, the kinds and the roles. The built-in controllers run under
// their own service accounts, because a rollout, the garbage collector and the
// removal of a namespace must go on working. Attacks are made as a tenant with
// the ClusterRole edit bound in its namespace, never as an administrator.
package deny
