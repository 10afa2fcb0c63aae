// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSlowerThanBefore(t *testing.T) {
	before := []row{{"unit", "p", 30}, {"e2e", "p", 1}, {"unit", "gone", 1}}
	tests := map[string]struct {
		now  []packageTime
		want []difference
	}{
		"as long as before":                   {[]packageTime{{Name: "p", Seconds: 30}}, nil},
		"half as long again":                  {[]packageTime{{Name: "p", Seconds: 45}}, nil},
		"more than that":                      {[]packageTime{{Name: "p", Seconds: 45.1}}, []difference{{"p", 30, 45.1}}},
		"more than that in two runs":          {[]packageTime{{Name: "p", Seconds: 40}, {Name: "p", Seconds: 6}}, []difference{{"p", 30, 46}}},
		"a cached run has no time":            {[]packageTime{{Name: "p", Seconds: 100, Cached: true}}, nil},
		"a package of which no time is known": {[]packageTime{{Name: "q", Seconds: 100}}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, slowerThanBefore(before, "unit", tc.now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("many times as long, and less than ten seconds more", func(t *testing.T) {
		if got := slowerThanBefore([]row{{"unit", "p", 0.1}}, "unit", []packageTime{{Name: "p", Seconds: 10}}); got != nil {
			t.Errorf("got %v", got)
		}
	})
}

func TestCapabilityOf(t *testing.T) {
	for name, want := range map[string]string{
		"pkg/specguard":                        "guard",
		"pkg/remediate/exec":                   "remediation",
		"pkg/remediated":                       shared,
		"test/integration/meshes":              shared,
		"test/integration/mesh":                "mesh",
		"test/integration/executorfaults/away": "remediation",
		"internal/kube":                        shared,
	} {
		if got := capabilityOf(name); got != want {
			t.Errorf("%s belongs to %s, want %s", name, got, want)
		}
	}
}

// A folder that was renamed would silently count as shared.
func TestEachFolderOfACapabilityExists(t *testing.T) {
	for _, c := range capabilities {
		for _, folder := range c.folders {
			if _, err := os.Stat(filepath.Join("..", "..", folder)); err != nil {
				t.Error(err)
			}
		}
	}
}
