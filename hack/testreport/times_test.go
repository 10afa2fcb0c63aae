// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSlowerThanBefore(t *testing.T) {
	before := []row{{"unit", "p", 30}, {"e2e", "p", 1}, {"unit", "gone", 1}, {"unit", "takeover in p", 1}, {"unit", "detection in p", 4}}
	tests := map[string]struct {
		now  []packageTime
		hot  []hotTime
		want []difference
	}{
		"as long as before":                             {[]packageTime{{Name: "p", Seconds: 30}}, nil, nil},
		"half as long again":                            {[]packageTime{{Name: "p", Seconds: 45}}, nil, nil},
		"more than that":                                {[]packageTime{{Name: "p", Seconds: 45.1}}, nil, []difference{{"p", 30, 45.1}}},
		"more than that in two runs":                    {[]packageTime{{Name: "p", Seconds: 40}, {Name: "p", Seconds: 6}}, nil, []difference{{"p", 30, 46}}},
		"a cached run has no time":                      {[]packageTime{{Name: "p", Seconds: 100, Cached: true}}, nil, nil},
		"a package of which no time is known":           {[]packageTime{{Name: "q", Seconds: 100}}, nil, nil},
		"a hot path that takes twice as long":           {nil, []hotTime{{Path: "takeover", Package: "p", Median: 2.1}}, []difference{{"takeover in p", 1, 2.1}}},
		"a hot path that takes less than a second more": {nil, []hotTime{{Path: "takeover", Package: "p", Median: 1.9}}, nil},
		"a hot path of less than half as long again":    {nil, []hotTime{{Path: "detection", Package: "p", Median: 5.9}}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, slowerThanBefore(before, "unit", tc.now, tc.hot)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("many times as long, and less than ten seconds more", func(t *testing.T) {
		if got := slowerThanBefore([]row{{"unit", "p", 0.1}}, "unit", []packageTime{{Name: "p", Seconds: 10}}, nil); got != nil {
			t.Errorf("got %v", got)
		}
	})
}

func TestTheTableIsMadeAnewForAStage(t *testing.T) {
	before := []row{
		{"e2e", "p", 1}, {"unit", "cached", 2}, {"unit", "confirmation in q", 3}, {"unit", "detection in p", 4}, {"unit", "gone", 5}, {"unit", "p", 6},
	}
	want := []row{
		{"e2e", "p", 1}, {"unit", "cached", 2}, {"unit", "confirmation in q", 3}, {"unit", "detection in p", 0.4}, {"unit", "new", 8}, {"unit", "p", 7},
	}
	got := rewritten(before, "unit", []packageTime{{Name: "p", Seconds: 7}, {Name: "cached", Seconds: 9, Cached: true}, {Name: "new", Seconds: 8}}, []hotTime{{Path: "detection", Package: "p", Median: 0.4}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
