// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ReleaseRouter names a router that carries out the split of a release.
type ReleaseRouter struct {
	// name is the name of a TrafficRouter, or mesh for the proxies of the mesh.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
}

// UsesMesh tells whether the proxies of the mesh carry out the split.
func (s *ABReleaseSpec) UsesMesh() bool {
	for i := range s.Routers {
		if s.Routers[i].Name == RouterMesh {
			return true
		}
	}
	return len(s.Routers) == 0
}

// NamesRouter tells whether a TrafficRouter carries out a part of the split.
func (s *ABReleaseSpec) NamesRouter(name string) bool {
	for i := range s.Routers {
		if s.Routers[i].Name == name {
			return name != RouterMesh
		}
	}
	return false
}

// HasConnectors tells whether at least one TrafficRouter carries out the split.
func (s *ABReleaseSpec) HasConnectors() bool {
	return len(s.Routers) > 1 || len(s.Routers) == 1 && !s.UsesMesh()
}
