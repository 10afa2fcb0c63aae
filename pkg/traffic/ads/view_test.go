// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// A view that is made by difference is the one that would be made of all resources, and the one
// before stays as it was.
func TestAViewByDifferenceIsTheViewOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := map[ads.Key]*ads.Resource{}
		view := ads.NewView()
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			before, copied := view, ads.NewView(values(all)...)
			var gone []ads.Key
			var set []*ads.Resource
			for range rapid.IntRange(0, 4).Draw(t, "gone") {
				k := ads.Key{Type: ads.Type(rapid.IntRange(0, 1).Draw(t, "type")), Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}
				gone = append(gone, k)
				delete(all, k)
			}
			for range rapid.IntRange(0, 4).Draw(t, "set") {
				r := of(ads.Type(rapid.IntRange(0, 1).Draw(t, "type")), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), fmt.Sprint(rapid.IntRange(1, 2).Draw(t, "version")))
				set = append(set, r)
				all[ads.Key{Type: r.Type, Name: r.Name}] = r
			}
			var changed []ads.Key
			view, changed = before.With(gone, set)
			want := ads.NewView(values(all)...)
			if diff := gocmp.Diff(sorted(ads.Diff(before, want)), sorted(changed)); diff != "" {
				t.Fatalf("what differs (-want +got):\n%s", diff)
			}
			for kind := ads.Cluster; kind <= ads.Route; kind++ {
				if diff := gocmp.Diff(want.Names(kind), view.Names(kind)); diff != "" {
					t.Fatalf("names (-want +got):\n%s", diff)
				}
			}
			if d := append(ads.Diff(want, view), ads.Diff(copied, before)...); len(d) > 0 {
				t.Fatalf("%v differ", d)
			}
		}
	})
}

func values(all map[ads.Key]*ads.Resource) (resources []*ads.Resource) {
	for _, r := range all {
		resources = append(resources, r)
	}
	return resources
}

func sorted(keys []ads.Key) []ads.Key {
	slices.SortFunc(keys, func(a, b ads.Key) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
	return keys
}
