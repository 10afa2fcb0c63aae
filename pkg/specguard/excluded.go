// SPDX-License-Identifier: Apache-2.0

package specguard

// ExcludedNamespaces are never guarded: what keeps the cluster itself up must
// not depend on Plumbline, and neither must own, the namespace that Plumbline
// runs in. The chart registers nothing there, so no write is stamped in them,
// and a stamp must not be believed.
func ExcludedNamespaces(own string) []string {
	return []string{"kube-system", "kube-node-lease", "kube-public", own}
}
