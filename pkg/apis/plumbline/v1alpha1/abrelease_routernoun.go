// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// RouterNoun returns the plural noun of the routers of a release, for messages to people.
func (s *ABReleaseSpec) RouterNoun() string {
	switch {
	case !s.HasConnectors():
		return "proxies"
	case s.UsesMesh():
		return "proxies and routers"
	default:
		return "routers"
	}
}
