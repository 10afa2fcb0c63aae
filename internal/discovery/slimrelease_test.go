// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Proxies divide no requests of a release that other routers carry out.
func TestTheMeshSeesTheSplitsOfItsReleasesAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		routers []string
		seen    bool
	}{
		"no router is named":   {nil, true},
		"the mesh":             {[]string{"mesh"}, true},
		"the mesh and another": {[]string{"edge", "mesh"}, true},
		"another one":          {[]string{"edge"}, false},
		"several, and no mesh": {[]string{"edge", "meshes"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ABRelease{Status: v1alpha1.ABReleaseStatus{Effective: &v1alpha1.EffectiveSplit{Sequence: 7}}}
			for _, name := range tc.routers {
				r.Spec.Routers = append(r.Spec.Routers, v1alpha1.ReleaseRouter{Name: name})
			}
			slim, err := slimRelease(r)
			if err != nil {
				t.Fatal(err)
			}
			if seen := slim.(*v1alpha1.ABRelease).Status.Effective != nil; seen != tc.seen { //nolint:forcetypeassert // it is one
				t.Errorf("the split is seen: %t", seen)
			}
		})
	}
}
