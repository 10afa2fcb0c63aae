// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

func TestMessagesNameTheRoutersOfARelease(t *testing.T) {
	mesh, edge := ReleaseRouter{Name: RouterMesh}, ReleaseRouter{Name: "edge"}
	for name, tc := range map[string]struct {
		routers []ReleaseRouter
		want    string
	}{
		"no routers":                   {nil, "proxies"},
		"the mesh":                     {[]ReleaseRouter{mesh}, "proxies"},
		"a TrafficRouter":              {[]ReleaseRouter{edge}, "routers"},
		"the mesh and a TrafficRouter": {[]ReleaseRouter{mesh, edge}, "proxies and routers"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := ABReleaseSpec{Routers: tc.routers}
			if got := spec.RouterNoun(); got != tc.want {
				t.Errorf("the noun is %q, want %q", got, tc.want)
			}
		})
	}
}
