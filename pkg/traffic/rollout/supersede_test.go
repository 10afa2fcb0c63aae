// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// A list that is cut would let a change pass that returns to a part of the images.
func TestARunStoresAllImagesOrNone(t *testing.T) {
	many := func(n int) (images []string) {
		for i := range n {
			images = append(images, rollout.ImageOf(fmt.Sprintf("c%02d", i), "shop:1"))
		}
		return images
	}
	long := func(n int) []string { return []string{rollout.ImageOf("app", strings.Repeat("x", n-len("app=")))} }
	for name, c := range map[string]struct {
		supersede    rollout.Supersede
		images, want []string
	}{
		"images are sorted":                         {rollout.SupersedeReject, []string{"b=2", "a=1"}, []string{"a=1", "b=2"}},
		"as many as fit":                            {rollout.SupersedeReject, many(12), many(12)},
		"one more than fit":                         {rollout.SupersedeReject, many(13), nil},
		"as long as fits":                           {rollout.SupersedeReject, long(384), long(384)},
		"longer than fits":                          {rollout.SupersedeReject, long(385), nil},
		"none are known":                            {rollout.SupersedeReject, nil, nil},
		"a run that restarts has no use for them":   {rollout.SupersedeRestart, many(2), nil},
		"a policy that is not known stores nothing": {"Later", many(2), nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := underWay()
			f.Plan.Supersede = c.supersede
			stable := f.Arms["stable"]
			stable.Images = c.images
			f.Arms["stable"] = stable
			after := rollout.Decide(f).After
			if after.Run == nil || !after.IsOn() {
				t.Fatal("no run is under way")
			}
			if diff := cmp.Diff(c.want, after.Run.ActiveImages); diff != "" {
				t.Errorf("the images differ (-want +got):\n%s", diff)
			}
		})
	}
}
